import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LINKS_PER_SPAN_MAX, type RecordedSpan, SPANS_PER_TRACE_MAX } from './trace.ts'
import { Tracer } from './tracer.ts'

const REMOTE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const header = (flags: string): string => `00-${REMOTE.traceId}-${REMOTE.spanId}-${flags}`

function tracing(samplingRatePerMillion: number, random = 0.5) {
  const spans: RecordedSpan[] = []
  let ms = 0
  const tracer = new Tracer({
    samplingRatePerMillion,
    onSpan: (span) => spans.push(span),
    random: () => random,
    clock: { now: () => ms++ },
    now: () => 1_000_000,
  })
  return { tracer, spans }
}

describe('Tracer: which requests are recorded', () => {
  test('without a traceparent, the rate decides', () => {
    assert.equal(tracing(0, 0).tracer.begin(undefined), undefined)
    assert.equal(tracing(499_999).tracer.begin(undefined), undefined)
    const trace = tracing(500_001).tracer.begin(undefined)
    assert.equal(trace?.decide({ isTrusted: false }), true)
    assert.notEqual(tracing(1_000_000, 0.999_999_9).tracer.begin(undefined), undefined)
  })

  test('a trusted client decides for its requests, in both directions', () => {
    const never = tracing(0)
    const trace = never.tracer.begin(header('01'))
    assert.equal(trace?.decide({ isTrusted: true }), true)
    trace?.root.end()
    assert.deepEqual(never.spans[0]?.context.traceId, REMOTE.traceId)
    assert.equal(never.spans[0]?.parentSpanId, REMOTE.spanId)
    assert.equal(tracing(0).tracer.begin(header('00')), undefined)

    const always = tracing(1_000_000)
    assert.equal(always.tracer.begin(header('00'))?.decide({ isTrusted: true }), false)
    assert.deepEqual(always.spans, [])
  })

  test('any other client cannot decide, nor add spans to a trace of its choice', () => {
    const never = tracing(0)
    const refused = never.tracer.begin(header('01'))
    refused?.root.child('authentication').end()
    assert.equal(refused?.decide({ isTrusted: false }), false)
    refused?.root.end()
    assert.deepEqual(never.spans, [])

    for (const flags of ['00', '01']) {
      const always = tracing(1_000_000)
      const trace = always.tracer.begin(header(flags))
      trace?.root.child('authentication').end()
      assert.equal(always.spans.length, 0, 'nothing is exported before the decision')
      assert.equal(trace?.decide({ isTrusted: false }), true)
      trace?.root.end()
      const [child, root] = always.spans
      assert.notEqual(root?.context.traceId, REMOTE.traceId)
      assert.equal(root?.parentSpanId, undefined)
      assert.deepEqual(root?.links[0], REMOTE)
      assert.equal(child?.parentSpanId, root?.spanId)
      assert.equal(child?.context.traceId, root?.context.traceId)
    }
  })

  test('a header that is not a traceparent is the same as none', () => {
    assert.equal(tracing(0).tracer.begin('nonsense'), undefined)
    const { tracer, spans } = tracing(1_000_000)
    const trace = tracer.begin('nonsense')
    assert.equal(trace?.decide({ isTrusted: true }), true)
    trace?.root.end()
    assert.deepEqual(spans[0]?.links, [])
  })
})

describe('Tracer: bounds', () => {
  test('a trace has a limited number of spans; the rest is counted', () => {
    const { tracer, spans } = tracing(1_000_000)
    const trace = tracer.begin(undefined)
    assert.ok(trace)
    trace.decide({ isTrusted: false })
    for (let n = 0; n < 1000; n++) trace.root.child('part').child('detail').end()
    assert.ok(spans.length <= SPANS_PER_TRACE_MAX)
    assert.ok(tracer.omitted > 900)
    assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
    // What several requests share is recorded nevertheless.
    trace.root.child('part').shared('batch').end()
    assert.equal(spans.at(-1)?.name, 'batch')
  })

  test('a span has a limited number of links', () => {
    const { tracer } = tracing(1_000_000)
    const root = tracer.begin(undefined)?.root
    for (let n = 0; n < 1000; n++) root?.link(REMOTE)
    assert.equal(root?.links.length, LINKS_PER_SPAN_MAX)
  })

  test('of an error only its reason or kind is recorded', () => {
    const { tracer, spans } = tracing(1_000_000)
    const trace = tracer.begin(undefined)
    trace?.decide({ isTrusted: false })
    for (const error of [
      Object.assign(new Error('secret'), { kind: 'unavailable' }),
      Object.assign(new Error('secret'), { reason: 'a text with a secret' }),
      new TypeError('secret'),
    ]) {
      trace?.root.child('part').end(error)
    }
    assert.deepEqual(
      spans.map(({ failure }) => failure),
      ['unavailable', 'error', 'error'],
    )
  })
})
