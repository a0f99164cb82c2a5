package record

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compressors are pooled by codec and level. Levels come from a topic's
// configuration in Kafka's scales; each is mapped to the nearest that our library
// has, so that there are few pools.
var (
	gzipWriters [gzip.BestCompression + 1]sync.Pool // *gzip.Writer
	lz4Writers  [len(lz4Levels)]sync.Pool           // *lz4.Writer
	zstdWriters [zstd.SpeedBestCompression + 1]sync.Pool
)

// lz4Levels are the levels of the lz4 library; place 0 is its fast mode.
var lz4Levels = [...]lz4.CompressionLevel{
	lz4.Fast, lz4.Level1, lz4.Level2, lz4.Level3, lz4.Level4, lz4.Level5, lz4.Level6, lz4.Level7, lz4.Level8, lz4.Level9,
}

// kafkaLz4Default is Kafka's default of compression.lz4.level, which means the
// fast compressor, not level 9 of the slow one.
const kafkaLz4Default = 9

// compress appends the compressed form of plain to dst. level is in Kafka's scale
// for the codec: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22; 0 is the codec's
// default, and what a scale does not have is its nearest end.
func compress(dst []byte, codec Codec, level int, plain []byte) ([]byte, error) {
	switch codec {
	case CodecNone:
		return append(dst, plain...), nil
	case CodecGzip:
		return compressGzip(dst, level, plain)
	case CodecSnappy:
		return appendXerial(dst, plain), nil
	case CodecLz4:
		return compressLz4(dst, level, plain)
	case CodecZstd:
		return compressZstd(dst, level, plain)
	}
	return nil, fmt.Errorf("%v: %w", codec, ErrCodec)
}

func compressGzip(dst []byte, level int, plain []byte) ([]byte, error) {
	if level <= 0 {
		level = 6 // what zlib, and so Java, calls its default
	}
	level = min(level, gzip.BestCompression)
	w, _ := gzipWriters[level].Get().(*gzip.Writer)
	out := bytes.NewBuffer(dst)
	if w == nil {
		var err error
		if w, err = gzip.NewWriterLevel(out, level); err != nil {
			return nil, fmt.Errorf("gzip level %d: %w", level, err)
		}
	} else {
		w.Reset(out)
	}
	if err := writeAll(w, plain); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	gzipWriters[level].Put(w)
	return out.Bytes(), nil
}

func compressLz4(dst []byte, level int, plain []byte) ([]byte, error) {
	place := min(max(level, 0), len(lz4Levels)-1)
	if level == kafkaLz4Default {
		place = 0
	}
	w, _ := lz4Writers[place].Get().(*lz4.Writer)
	out := bytes.NewBuffer(dst)
	if w == nil {
		w = lz4.NewWriter(out)
		// As Kafka's writer: blocks of 64 KiB and no checksum over the content,
		// since the batch has one.
		err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.CompressionLevelOption(lz4Levels[place]))
		if err != nil {
			return nil, fmt.Errorf("lz4: %w", err)
		}
	} else {
		w.Reset(out)
	}
	if err := writeAll(w, plain); err != nil {
		return nil, fmt.Errorf("lz4: %w", err)
	}
	lz4Writers[place].Put(w)
	return out.Bytes(), nil
}

func writeAll(w io.WriteCloser, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}

func compressZstd(dst []byte, level int, plain []byte) ([]byte, error) {
	speed := zstd.SpeedDefault
	if level != 0 {
		speed = zstd.EncoderLevelFromZstd(level)
	}
	w, _ := zstdWriters[speed].Get().(*zstd.Encoder)
	if w == nil {
		var err error
		w, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			return nil, fmt.Errorf("zstd level %d: %w", level, err)
		}
	}
	dst = w.EncodeAll(plain, dst)
	zstdWriters[speed].Put(w)
	return dst, nil
}
