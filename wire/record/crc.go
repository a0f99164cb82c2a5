package record

import (
	"fmt"
	"hash/crc32"
)

// castagnoli is the polynomial of CRC-32C; Go uses the CPU's instruction for it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C of the batch from its attributes to its end.
func (v View) checksum() uint32 { return crc32.Checksum(v[atAttributes:], castagnoli) }

// VerifyCRC reads the whole batch and compares its CRC-32C with the one it
// carries. The error wraps [ErrCRC].
func (v View) VerifyCRC() error {
	if got, want := v.checksum(), v.CRC(); got != want {
		return fmt.Errorf("batch at offset %d of %d bytes: crc %08x computed, %08x stored: %w",
			v.BaseOffset(), len(v), got, want, ErrCRC)
	}
	return nil
}
