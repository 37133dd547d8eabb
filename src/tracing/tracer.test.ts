import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LINKS_PER_SPAN_MAX, type RecordedSpan, SPANS_PER_TRACE_MAX } from './trace.ts'
import { Tracer } from './tracer.ts'

const REMOTE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const TRUSTED = { isKnown: true, isTrusted: true }
const KNOWN = { isKnown: true, isTrusted: false }
const UNKNOWN = { isKnown: false, isTrusted: false }
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
  test('the rate decides about requests without a traceparent', () => {
    assert.equal(tracing(0, 0).tracer.begin(undefined), undefined)
    assert.equal(tracing(499_999).tracer.begin(undefined), undefined)
    assert.ok(tracing(500_001).tracer.begin(undefined)?.decide(KNOWN))
    assert.notEqual(tracing(1_000_000, 0.999_999_9).tracer.begin(undefined), undefined)
  })

  test('a trusted client decides for its requests, in both directions', () => {
    const never = tracing(0)
    never.tracer.begin(header('01'))?.decide(TRUSTED)?.end()
    assert.deepEqual(never.spans[0]?.context.traceId, REMOTE.traceId)
    assert.equal(never.spans[0]?.parentSpanId, REMOTE.spanId)
    assert.deepEqual(never.spans[0]?.links, [])
    assert.equal(tracing(0).tracer.begin(header('00')), undefined)
    assert.equal(tracing(1_000_000).tracer.begin(header('00'))?.decide(TRUSTED), undefined)
  })

  test('any other client cannot decide, nor add spans to a trace of its choice', () => {
    assert.equal(tracing(0).tracer.begin(header('01'))?.decide(KNOWN), undefined)
    for (const flags of ['00', '01']) {
      const { tracer, spans } = tracing(1_000_000)
      const root = tracer.begin(header(flags))?.decide(KNOWN)
      root?.firstChild('authentication').end()
      root?.end()
      const [child] = spans
      assert.notEqual(root?.context.traceId, REMOTE.traceId)
      assert.equal(root?.parentSpanId, undefined)
      assert.deepEqual(root?.links, [REMOTE])
      assert.equal(child?.parentSpanId, root?.spanId)
      assert.equal(child?.context.traceId, root?.context.traceId)
    }
  })

  test('a client without valid credentials cannot even add a link', () => {
    const root = tracing(1_000_000).tracer.begin(header('01'))?.decide(UNKNOWN)
    assert.deepEqual(root?.links, [])
  })

  test('the span begins before the user is known', () => {
    // Each reading of the clock is a millisecond after the one before.
    const { tracer } = tracing(1_000_000)
    const undecided = tracer.begin(undefined)
    const root = undecided?.decide(KNOWN)
    const authentication = root?.firstChild('authentication')
    authentication?.end()
    assert.ok(root && authentication)
    assert.equal(root.startMs, 1_000_000 - 1)
    assert.equal((authentication as RecordedSpan).startMs, root.startMs)
    assert.equal((authentication as RecordedSpan).endMs, root.startMs + 2)
  })

  test('a header that is not a traceparent is the same as none', () => {
    assert.equal(tracing(0).tracer.begin('nonsense'), undefined)
    const root = tracing(1_000_000).tracer.begin('nonsense')?.decide(TRUSTED)
    assert.deepEqual(root?.links, [])
  })
})

describe('Tracer: bounds', () => {
  test('a trace has a limited number of spans, and counts the rest', () => {
    const { tracer, spans } = tracing(1_000_000)
    const root = tracer.begin(undefined)?.decide(KNOWN)
    assert.ok(root)
    for (let n = 0; n < 1000; n++) root.child('part').child('detail').end()
    assert.ok(spans.length <= SPANS_PER_TRACE_MAX)
    assert.ok(tracer.omitted > 900)
    assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
    const omitted = root.child('part')
    assert.equal(omitted.shared('batch'), undefined, 'nor does it have batches of its own')
    root.link(omitted.context)
    assert.deepEqual(root.links, [])
  })

  test('nothing changes a span after its end', () => {
    const { tracer, spans } = tracing(1_000_000)
    const root = tracer.begin(undefined)?.decide(KNOWN)
    root?.end()
    const { endMs } = root ?? assert.fail()
    root?.set('late', 1)
    root?.link(REMOTE)
    root?.end(new Error('late'))
    assert.deepEqual([spans.length, root?.values, root?.links], [1, {}, []])
    assert.deepEqual([root?.endMs, root?.failure], [endMs, undefined])
  })

  test('a span has a limited number of links', () => {
    const { tracer } = tracing(1_000_000)
    const root = tracer.begin(undefined)?.decide(KNOWN)
    for (let n = 0; n < 1000; n++) root?.link(REMOTE)
    assert.equal(root?.links.length, LINKS_PER_SPAN_MAX)
  })

  test('only the reason or kind of an error is recorded', () => {
    const { tracer, spans } = tracing(1_000_000)
    const root = tracer.begin(undefined)?.decide(KNOWN)
    for (const error of [
      Object.assign(new Error('secret'), { kind: 'unavailable' }),
      Object.assign(new Error('secret'), { reason: 'a text with a secret' }),
      new TypeError('secret'),
    ]) {
      root?.child('part').end(error)
    }
    assert.deepEqual(
      spans.map(({ failure }) => failure),
      ['unavailable', 'error', 'error'],
    )
  })
})
