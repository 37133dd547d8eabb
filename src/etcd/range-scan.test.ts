import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { status } from '../grpc/status-codes.ts'
import { EtcdError } from './errors.ts'
import { FakeStream, fakeMembers, settle } from './fake-members.fixture.ts'
import type { KeyValue, RangeRequest, RangeResult, ScanRequest } from './protocol/protocol.ts'
import { RangeScanner } from './range-scan.ts'

// Tests how a scan goes on when streams end, with a fake member whose streams the test feeds.

const keysMax = 40
const names = Array.from({ length: keysMax }, (_, n) => `k${String(n).padStart(2, '0')}`)
const whole: ScanRequest = { key: Buffer.from('k'), rangeEnd: Buffer.from('l'), isWhole: true }

function kvOf(name: string): KeyValue {
  const value = Buffer.alloc(8)
  return { key: Buffer.from(name), value, createRevision: 1, modRevision: 1, version: 1, lease: 0n }
}

class KeyStream extends FakeStream<readonly KeyValue[]> {
  push(from: number, to: number): void {
    this.deliver(names.slice(from, to).map(kvOf))
  }
}

function setUp() {
  const ranges: RangeRequest[] = []
  const reported: boolean[] = []
  const { members, streams, clock, pings, connection, reconnect } = fakeMembers(
    () => new KeyStream(),
  )
  const options = { error: undefined as EtcdError | undefined, keys: 8, count: keysMax }
  const range = async (request: RangeRequest): Promise<RangeResult> => {
    ranges.push(request)
    const { error } = options
    options.error = undefined
    if (error !== undefined) throw error
    const rest = names.filter((name) => Buffer.compare(Buffer.from(name), request.key) >= 0)
    const kvs = rest.slice(0, Math.min(options.keys, request.limit ?? 0)).map(kvOf)
    const count = rest.length - keysMax + options.count
    return { revision: 7 + ranges.length, kvs, more: true, count, connection: connection() }
  }
  const scanner = new RangeScanner({
    members,
    range,
    clock,
    onCall: ({ hasFailed }) => reported.push(hasFailed),
  })
  return { scanner, streams, ranges, reported, options, reconnect, clock, pings }
}

/** Starts to read everything; `found` fills up, and `ended` settles at the end. */
function readAll(scanner: RangeScanner, request: ScanRequest = whole, signal?: AbortSignal) {
  const found: string[] = []
  const counts: number[] = []
  const connections: number[] = []
  const read = async () => {
    for await (const { kvs, count, connection } of scanner.scan(request, { signal })) {
      found.push(...kvs.map(({ key }) => key.toString()))
      counts.push(count)
      connections.push(connection)
    }
  }
  const ended = read()
  ended.catch(() => {})
  return { found, counts, connections, ended }
}

describe('a scan', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  test('reads a few keys with a range, and the others as a stream at its revision', async () => {
    const { scanner, streams, ranges, reported } = setUp()
    const { found, counts, ended } = readAll(scanner)
    await settle()
    assert.deepEqual([ranges[0]?.limit, found.length], [8, 8])
    const [stream] = streams
    // Field 4 is the revision, field 1 the key after the last one.
    assert.ok(stream?.requests[0]?.includes(Buffer.from('k07\0')))
    assert.deepEqual([...(stream?.requests[0]?.subarray(-2) ?? [])], [4 * 8, 8])
    stream?.push(8, 20)
    stream?.push(20, 40)
    await ended
    assert.deepEqual(found, names)
    assert.deepEqual(counts, [40, 32, 20])
    assert.deepEqual([ranges.length, streams.length, stream?.isCancelled], [1, 1, true])
    assert.deepEqual(reported, [false])
  })

  test('goes on with a range after the last key when a stream breaks, then with a stream', async () => {
    const { scanner, streams, ranges, reported, reconnect } = setUp()
    const { found, connections, ended } = readAll(scanner)
    await settle()
    streams[0]?.push(8, 13)
    await settle()
    reconnect()
    streams[0]?.fail(status.UNAVAILABLE)
    await settle()
    assert.deepEqual([ranges[1]?.key.toString(), ranges[1]?.revision], ['k12\0', 8])
    assert.equal(found.length, 13 + 8)
    streams[1]?.push(21, 40)
    await ended
    assert.deepEqual(found, names)
    assert.deepEqual(connections, [1, 1, 2, 2])
    assert.deepEqual(reported, [true, false])
  })

  test('a stream that ends before the last key is not the end of the scan', async () => {
    const { scanner, streams, ranges, options } = setUp()
    const { found, ended } = readAll(scanner)
    await settle()
    streams[0]?.push(8, 10)
    await settle()
    options.keys = keysMax
    streams[0]?.emit('end')
    await ended
    assert.deepEqual([found, ranges.length], [names, 2])
  })

  test('fails with the error of the range that follows a stream', async () => {
    const { scanner, streams, options } = setUp()
    const { ended } = readAll(scanner)
    await settle()
    options.error = new EtcdError({ kind: 'compacted', message: 'gone' })
    streams[0]?.fail(status.OUT_OF_RANGE)
    await assert.rejects(ended, { kind: 'compacted' })
  })

  test('reads ranges from a member without streams, until it has another connection', async () => {
    const { scanner, streams, ranges, reported, reconnect } = setUp()
    const first = readAll(scanner)
    await settle()
    streams[0]?.fail(status.UNIMPLEMENTED)
    await first.ended
    assert.deepEqual([first.found, streams.length, reported], [names, 1, []])
    ranges.length = 0
    const second = readAll(scanner)
    await second.ended
    assert.deepEqual([second.found, streams.length], [names, 1])
    assert.ok((ranges[0]?.limit ?? 0) > 8, 'no stream is expected to follow')
    reconnect()
    readAll(scanner)
    await settle()
    assert.equal(streams.length, 2)
  })

  test('opens no second stream on a connection on which one was silent', async () => {
    const { scanner, streams } = setUp()
    const { found, ended } = readAll(scanner)
    await settle()
    mock.timers.tick(1_000)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    await ended
    assert.deepEqual([found, streams.length], [names, 1])
  })

  test('opens no stream for the rest of a limited scan', async () => {
    const { scanner, streams } = setUp()
    const scan = scanner.scan({ ...whole, isWhole: false, limit: 12 })
    await scan.next()
    const { value } = await scan.next()
    assert.equal(value?.kvs.length, 4)
    assert.equal(streams.length, 0)
    await scan.return()
  })

  test('reports another state on a new connection as a lost history', async () => {
    const { scanner, streams, options, reconnect } = setUp()
    const { ended } = readAll(scanner)
    await settle()
    options.count = keysMax - 1
    reconnect()
    streams[0]?.fail(status.UNAVAILABLE)
    await assert.rejects(ended, { kind: 'compacted', message: /another history/ })
  })

  test('requests the next range ahead only when it reads everything', async () => {
    for (const isWhole of [true, false]) {
      const { scanner, streams, ranges } = setUp()
      const first = readAll(scanner)
      await settle()
      streams[0]?.fail(status.UNIMPLEMENTED)
      await first.ended
      ranges.length = 0
      const scan = scanner.scan({ ...whole, isWhole })
      await scan.next()
      assert.equal(ranges.length, isWhole ? 2 : 1)
      await scan.return()
    }
  })

  test('leaves a stream on which no byte arrives for a second, and suspects its member', async () => {
    const { scanner, streams, ranges, pings } = setUp()
    readAll(scanner)
    await settle()
    mock.timers.tick(900)
    const [stream] = streams
    assert.ok(stream)
    // Part of a message.
    stream.bytesReceived += 1
    mock.timers.tick(100)
    await settle()
    assert.deepEqual([ranges.length, pings()], [1, 0])
    mock.timers.tick(1_000)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([stream.isCancelled, ranges.length, pings()], [true, 5, 2])
  })

  test('cancels the stream when its caller has enough, and when the signal aborts', async () => {
    const { scanner, streams, reported } = setUp()
    const scan = scanner.scan(whole)
    await scan.next()
    const next = scan.next()
    await settle()
    streams[0]?.push(8, 20)
    await next
    await scan.return()
    assert.equal(streams[0]?.isCancelled, true)

    const { scanner: other, streams: its, options } = setUp()
    const ending = new AbortController()
    const { ended } = readAll(other, whole, ending.signal)
    await settle()
    options.error = new EtcdError({ kind: 'cancelled', message: 'cancelled by the caller' })
    ending.abort()
    await assert.rejects(ended, { kind: 'cancelled' })
    assert.deepEqual([its[0]?.isCancelled, reported], [true, []])
  })

  test('requests fewer keys when a response is too large, and fails if one key is', async () => {
    const { scanner, ranges, options } = setUp()
    const tooLarge = new EtcdError({ kind: 'too-large', message: 'too large' })
    options.error = tooLarge
    const scan = scanner.scan({ ...whole, isWhole: false })
    await scan.next()
    assert.deepEqual(
      ranges.map(({ limit }) => limit),
      [256, 32],
    )
    await scan.return()
    options.error = tooLarge
    await assert.rejects(scanner.scan({ ...whole, isWhole: false, limit: 1 }).next(), tooLarge)
  })

  test('fails when the number of keys changes although the state is the same', async () => {
    const { scanner, streams, options } = setUp()
    const { ended } = readAll(scanner)
    await settle()
    options.count = keysMax - 1
    streams[0]?.emit('end')
    await assert.rejects(ended, { kind: 'internal', message: /8 keys of a state that has 32 more/ })
  })

  test('fails when etcd sends none of the keys that it counts', async () => {
    const { scanner, options } = setUp()
    options.keys = 0
    await assert.rejects(readAll(scanner).ended, { kind: 'internal', message: /has 40 more/ })
  })

  test('does not use a stream that repeats keys, or has messages without keys', async () => {
    for (const push of [
      (stream: KeyStream) => stream.push(8, 8),
      (stream: KeyStream) => stream.push(7, 39),
      (stream: KeyStream) => {
        stream.messages.push([...names.slice(8, 39), 'k38'].map(kvOf))
        stream.emit('readable')
      },
    ]) {
      const { scanner, streams, options } = setUp()
      const { found, ended } = readAll(scanner)
      await settle()
      options.keys = keysMax
      const [stream] = streams
      assert.ok(stream)
      push(stream)
      await ended
      assert.deepEqual([found, stream.isCancelled], [names, true])
    }
  })

  test('leaves a stream that sends bytes without completing a message', async () => {
    const { scanner, streams, options, clock } = setUp()
    const { found, ended } = readAll(scanner)
    await settle()
    const [stream] = streams
    assert.ok(stream)
    options.keys = keysMax
    for (let second = 0; second < 12; second++) {
      stream.bytesReceived += 1
      clock.ms += 1_000
      mock.timers.tick(1_000)
      await settle()
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    await ended
    assert.deepEqual([found, stream.isCancelled], [names, true])
  })

  test('does not use a stream that has more keys than are left', async () => {
    const { scanner, streams, options } = setUp()
    const { found, ended } = readAll(scanner)
    await settle()
    options.keys = keysMax
    streams[0]?.push(0, 40)
    await ended
    assert.deepEqual(found, names)
  })
})
