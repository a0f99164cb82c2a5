// Drives kafkajs for the interop suite: one JSON request a line from standard input, one JSON answer a line to standard
// output, as the package comment of bench/interop describes.
//
// kafkajs reads only as a member of a group through its public consumer. To read one partition from an offset, this
// driver calls its broker object's fetch, which is the library's own request, response and batch decoder without the
// group around them.
'use strict'

const fs = require('fs')
const readline = require('readline')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const zstd = require('@mongodb-js/zstd')

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) => zstd.compress(encoder.buffer),
  decompress: (buffer) => zstd.decompress(buffer),
})

const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const encode = (buffer) => (buffer == null ? null : Buffer.from(buffer).toString('base64'))
const decode = (text) => (text == null ? null : Buffer.from(text, 'base64'))

let kafka

const operations = {
  async hello({ bootstrap }) {
    kafka = new Kafka({
      brokers: bootstrap.split(','),
      clientId: 'interop-kafkajs',
      retry: { retries: 3 },
      logCreator: () => ({ label, log }) => console.error(label, JSON.stringify(log)),
      logLevel: logLevel.WARN,
    })
    return {
      hello: {
        client: 'kafkajs',
        version: require('kafkajs/package.json').version,
        codecs: Object.keys(codecs),
        idempotent: true,
        // Its headers are an object: the order between names is lost, in both directions, and null has no way in.
        lacks: ['header-order', 'write-null-header', 'read-failover'],
        groups: ['classic/roundrobin', 'classic/regex'],
      },
    }
  },

  async create({ topic, count, config }) {
    const admin = kafka.admin()
    await admin.connect()
    try {
      const configEntries = Object.entries(config || {}).map(([name, value]) => ({ name, value }))
      const created = await admin.createTopics({
        topics: [{ topic, numPartitions: count, replicationFactor: 1, configEntries }],
        waitForLeaders: true,
      })
      if (!created) {
        // How the library reports TOPIC_ALREADY_EXISTS.
        throw Object.assign(new Error(`${topic} was not created`), { code: 36 })
      }
    } finally {
      await admin.disconnect()
    }
    return {}
  },

  async delete({ topic }) {
    const admin = kafka.admin()
    await admin.connect()
    try {
      await admin.deleteTopics({ topics: [topic] })
    } finally {
      await admin.disconnect()
    }
    return {}
  },

  async admin({ topic, count, config, from }) {
    const admin = kafka.admin()
    await admin.connect()
    try {
      const [[name, value]] = Object.entries(config)
      const partitions = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
      if ((await partitions()) < count) {
        await admin.createPartitions({ topicPartitions: [{ topic, count }] })
      }
      const type = ConfigResourceTypes.TOPIC
      await admin.alterConfigs({ resources: [{ type, name: topic, configEntries: [{ name, value }] }] })
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(from) }] })
      const described = await admin.describeConfigs({ resources: [{ type, name: topic, configNames: [name] }] })
      const offsets = (await admin.fetchTopicOffsets(topic)).find((p) => p.partition === 0)
      return {
        admin: {
          partitions: await partitions(),
          value: described.resources[0].configEntries.find((e) => e.configName === name).configValue,
          earliest: Number(offsets.low),
          latest: Number(offsets.high),
        },
      }
    } finally {
      await admin.disconnect()
    }
  },

  async produce({ topic, partition, codec, acks, idempotent, batchRecords, patient, records }) {
    const retry = patient ? { initialRetryTime: 100, maxRetryTime: 500, retries: 100 } : undefined
    const producer = kafka.producer({ idempotent, maxInFlightRequests: 1, allowAutoTopicCreation: false, retry })
    await producer.connect()
    try {
      const messages = records.map((r) => ({
        key: decode(r.key),
        value: decode(r.value),
        partition,
        timestamp: String(r.timestamp),
        headers: headersObject(r.headers),
      }))
      const offsets = []
      const size = batchRecords || messages.length
      for (let start = 0; start < messages.length; start += size) {
        const batch = messages.slice(start, start + size)
        const answer = await producer.send({ topic, acks, compression: codecs[codec], messages: batch })
        const base = acks === 0 ? NaN : Number(answer[0].baseOffset)
        batch.forEach((_, i) => offsets.push(acks === 0 ? -1 : base + i))
      }
      return { offsets }
    } finally {
      await producer.disconnect()
    }
  },

  async read({ topic, partition, from, count, waitMs }) {
    const deadline = Date.now() + (waitMs || 30000)
    const symbol = Object.getOwnPropertySymbols(kafka).find((s) => s.description === 'private:Kafka:createCluster')
    const cluster = kafka[symbol]({ allowAutoTopicCreation: false })
    await cluster.connect()
    try {
      await cluster.addTargetTopic(topic)
      const leaders = cluster.findLeaderForPartitions(topic, [partition])
      const broker = await cluster.findBroker({ nodeId: Object.keys(leaders)[0] })
      const records = []
      let next = from
      while (records.length < count) {
        if (Date.now() > deadline) {
          throw new Error(`${records.length} of ${count} records`)
        }
        const answer = await broker.fetch({
          isolationLevel: 0,
          maxWaitTime: 500,
          topics: [{ topic, partitions: [{ partition, fetchOffset: next, maxBytes: 10485760 }] }],
        })
        for (const m of answer.responses[0].partitions[0].messages) {
          const offset = Number(m.offset)
          if (offset < next) {
            continue // a fetch starts at the batch that holds the offset
          }
          next = offset + 1
          records.push({
            key: encode(m.key),
            value: encode(m.value),
            timestamp: Number(m.timestamp),
            headers: headersList(m.headers),
            offset,
          })
        }
      }
      return { records }
    } finally {
      await cluster.disconnect()
    }
  },
}

// Members of groups by the suite's names, and what to tell one of them to leave.
const members = {}

// The file into which a member writes what happened to it; the Go drivers show its form.
function journal(path) {
  const file = fs.openSync(path, 'a')
  const line = (text) => fs.writeSync(file, text + '\n')
  return {
    write: (kind, topic, partition, offset = -1) => line(`${kind} ${Date.now()} ${topic} ${partition} ${offset}`),
    refused: (e) => line(`refused ${Date.now()} ${JSON.stringify(String(e))}`),
    failed: (e) => line(`failed ${Date.now()} ${JSON.stringify(String(e))}`),
    close: () => fs.closeSync(file),
  }
}

Object.assign(operations, {
  async join({ member, group, topics, pattern, reset, sessionMs, seek, log }) {
    const out = journal(log)
    const consumer = kafka.consumer({
      groupId: group,
      sessionTimeout: sessionMs,
      rebalanceTimeout: sessionMs,
      heartbeatInterval: sessionMs / 10,
      maxWaitTimeInMs: 100,
      metadataMaxAge: pattern ? 1000 : 300000,
      retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 20 },
    })
    const { GROUP_JOIN, COMMIT_OFFSETS, CRASH } = consumer.events
    consumer.on(GROUP_JOIN, ({ payload }) => {
      for (const [topic, partitions] of Object.entries(payload.memberAssignment)) {
        partitions.forEach((p) => out.write('assigned', topic, p))
        if (seek && topic === topics[0] && partitions.includes(seek.partition)) {
          consumer.seek({ topic, partition: seek.partition, offset: String(seek.offset) })
          seek = null
        }
      }
    })
    // A commit of one that is about to stop does nothing and says nothing; this event says what was done.
    consumer.on(COMMIT_OFFSETS, ({ payload }) => {
      payload.topics.forEach((t) => t.partitions.forEach((p) => out.write('committed', t.topic, p.partition, p.offset)))
    })
    consumer.on(CRASH, ({ payload }) => (payload.restart ? out.refused(payload.error) : out.failed(payload.error)))
    members[member] = { consumer, out }
    await consumer.connect()
    await consumer.subscribe({ topics: pattern ? [new RegExp(pattern)] : topics, fromBeginning: reset === 'earliest' })
    await consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 4,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset, isStale, isRunning }) => {
        if (isStale() || !isRunning()) {
          return // its partition was sought or taken away
        }
        batch.messages.forEach((m) => out.write('got', batch.topic, batch.partition, m.offset))
        resolveOffset(batch.lastOffset())
        const offset = String(BigInt(batch.lastOffset()) + 1n)
        try {
          await consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset }])
        } catch (e) {
          out.refused(e)
          throw e // the library joins again
        }
      },
    })
    return {}
  },

  async leave({ member }) {
    const { consumer, out } = members[member]
    delete members[member]
    await consumer.disconnect()
    out.close()
    return {}
  },

  // The library commits metadata only as a member: one that consumes from the end, where nothing comes.
  async commit({ group, topic, partition, from, metadata }) {
    const consumer = kafka.consumer({ groupId: group, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 100 })
    await consumer.connect()
    try {
      const done = new Promise((resolve) => consumer.on(consumer.events.COMMIT_OFFSETS, resolve))
      await consumer.subscribe({ topic })
      await consumer.run({ autoCommit: false, eachMessage: async () => {} })
      const trying = setInterval(() => {
        // Before it has joined, this does nothing and says nothing.
        consumer.commitOffsets([{ topic, partition, offset: String(from), metadata }]).catch((e) => console.error(e))
      }, 50)
      await done
      clearInterval(trying)
    } finally {
      await consumer.disconnect()
    }
    const admin = kafka.admin()
    await admin.connect()
    try {
      const [fetched] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
      const found = fetched.partitions.find((p) => p.partition === partition)
      return { committed: { offset: Number(found.offset), metadata: found.metadata } }
    } finally {
      await admin.disconnect()
    }
  },
})

function headersObject(list) {
  const headers = {}
  for (const { name, value } of list || []) {
    const bytes = decode(value)
    headers[name] = name in headers ? [].concat(headers[name], [bytes]) : bytes
  }
  return headers
}

function headersList(headers) {
  return Object.entries(headers || {}).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((v) => ({ name, value: encode(v) })),
  )
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line)
    let answer
    try {
      const operation = operations[request.op]
      if (!operation) {
        throw new Error(`no operation ${request.op}`)
      }
      answer = await operation(request)
    } catch (e) {
      console.error(e)
      const cause = e.code !== undefined ? e : e.cause || (e.errors || [])[0] || e
      answer = { error: { message: `${e.name}: ${e.message}` } }
      if (typeof cause.code === 'number') {
        answer.error.code = cause.code
      }
    }
    process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + '\n')
  }
}

main().catch((e) => {
  console.error(e)
  process.exit(1)
})
