import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, test } from 'node:test'
import { headersFrom, OtlpExporter } from '../../../src/tracing/otlp-exporter.ts'
import { type RecordedSpan, Trace } from '../../../src/tracing/trace.ts'
import { OtlpReceiver } from '../../support/otlp-receiver.ts'

const resource = { 'service.name': 'tidings' }

/** A trace of a request that took 1.5 ms and failed, with one part and two links. */
function recordedSpans(): readonly RecordedSpan[] {
  const spans: RecordedSpan[] = []
  const clock = { time: 10, now: () => clock.time }
  const { root } = new Trace(
    {
      clock,
      now: () => 1_794_710_508_193.25,
      onSpan: (span) => spans.push(span),
      onOmitted: () => {},
    },
    { name: 'POST /é', kind: 'server' },
  )
  const part = root.child('etcd txn', 'client')
  root.set('verb', 'create')
  root.set('empty', '')
  root.set('code', 0)
  root.link({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) })
  root.link({ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) })
  clock.time = 11.5
  part.end()
  root.end({ kind: 'timeout' })
  return spans
}

describe('OtlpExporter', () => {
  test('a call that cannot be sent does not close the connection', async () => {
    await using receiver = await OtlpReceiver.start()
    const headers: Record<string, string> = {}
    const exporter = new OtlpExporter({ endpoint: receiver.endpoint, resource, headers })
    await exporter.send(recordedSpans())
    Object.assign(headers, { upgrade: 'h2c' })
    await assert.rejects(exporter.send(recordedSpans()), { origin: 'local', code: 13 })
    Reflect.deleteProperty(headers, 'upgrade')
    await exporter.send(recordedSpans())
    assert.equal(receiver.sessionCount, 1)
    exporter.close()
  })

  test('the collector receives every field of the spans', async () => {
    await using receiver = await OtlpReceiver.start()
    const headers = { 'x-token': 'secret' }
    const exporter = new OtlpExporter({ endpoint: receiver.endpoint, resource, headers })
    const spans = recordedSpans()
    await exporter.send(spans)
    const [part, root] = receiver.spans
    const [sentPart, sentRoot] = spans
    assert.deepEqual(root, {
      ...sentRoot?.context,
      parentSpanId: '',
      name: 'POST /é',
      kind: 2,
      startNs: 1_794_710_508_193_250_000n,
      endNs: 1_794_710_508_194_750_000n,
      attributes: { verb: 'create', empty: '', code: 0 },
      links: [
        { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) },
        { traceId: 'c'.repeat(32), spanId: 'd'.repeat(16) },
      ],
      failure: 'timeout',
      resource,
    })
    assert.deepEqual(
      [part?.spanId, part?.parentSpanId, part?.kind, part?.failure],
      [sentPart?.spanId, sentRoot?.spanId, 3, undefined],
    )
    assert.equal(receiver.headers[0]?.['x-token'], 'secret')
    await exporter.send(spans)
    assert.equal(receiver.spans.length, 4)
    exporter.close()
  })

  test('resolves to the number of spans that the collector rejected', async () => {
    await using receiver = await OtlpReceiver.start()
    const exporter = new OtlpExporter({ endpoint: receiver.endpoint, resource })
    assert.equal(await exporter.send(recordedSpans()), 0)
    // partial_success with rejected_spans = 300 and an error_message.
    receiver.response = Buffer.from([0x0a, 7, 0x08, 0xac, 0x02, 0x12, 2, 0x6e, 0x6f])
    assert.equal(await exporter.send(recordedSpans()), 300)
    // A warning: all spans were accepted.
    receiver.response = Buffer.from([0x0a, 4, 0x12, 2, 0x6e, 0x6f])
    assert.equal(await exporter.send(recordedSpans()), 0)
    exporter.close()
  })

  test('rejects while the collector is down, and connects again when it is up', async () => {
    const first = await OtlpReceiver.start()
    const exporter = new OtlpExporter({ endpoint: first.endpoint, resource })
    await exporter.send(recordedSpans())
    await first[Symbol.asyncDispose]()
    await assert.rejects(exporter.send(recordedSpans()))
    await assert.rejects(exporter.send(recordedSpans()), /ECONNREFUSED/)
    await using second = await OtlpReceiver.start(first.port)
    await exporter.send(recordedSpans())
    assert.equal(second.spans.length, 2)
    exporter.close()
  })

  test('rejects when the collector accepts the connection and sends nothing', async () => {
    const server = createServer((socket) => socket.on('error', () => {}))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const exporter = new OtlpExporter({ endpoint: `127.0.0.1:${port}`, resource })
    await assert.rejects(exporter.send(recordedSpans()), /does not respond/)
    exporter.close()
    server.close()
  })
})

const variable = 'OTEL_EXPORTER_OTLP_HEADERS'

test('headersFrom reads pairs and ignores everything else', () => {
  assert.deepEqual(headersFrom(variable, 'Api-Key=a%20b, other = c=d ,bad,=x,%=y,e='), {
    'api-key': 'a b',
    other: 'c=d',
    e: '',
  })
  assert.deepEqual(headersFrom(variable, undefined), {})
})

test('headersFrom refuses headers that gRPC does not allow, and does not repeat their values', () => {
  for (const name of ['te', 'Connection', 'content-type', 'grpc-timeout', 'upgrade', 'host']) {
    assert.throws(() => headersFrom(variable, `a=b,${name}=secret`), {
      message: `${variable}: the header ${name.toLowerCase()} cannot be set`,
    })
  }
  for (const value of ['secret%0D%0Ax', 'secret%00', 'secret%7F', 'secret%C3%A9', 'secreté']) {
    assert.throws(() => headersFrom(variable, `token=${value}`), {
      message: `${variable}: the header token has a character that is not printable ASCII`,
    })
  }
})
