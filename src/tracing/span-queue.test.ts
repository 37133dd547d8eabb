import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SpanQueue } from './span-queue.ts'
import type { RecordedSpan } from './trace.ts'
import { Tracer } from './tracer.ts'

function spanOf(): RecordedSpan {
  const tracer = new Tracer({ samplingRatePerMillion: 1e6, onSpan: () => {} })
  const root = tracer.begin(undefined)?.decide({ isKnown: true, isTrusted: false })
  return root ?? assert.fail('no span')
}

function queueWith(send: (spans: readonly RecordedSpan[]) => Promise<number>, spansMax?: number) {
  const said: string[] = []
  const queue = new SpanQueue({
    send,
    spansMax,
    onFailing: (error) => said.push(`failing: ${error}`),
    onRecovered: (lost) => said.push(`recovered, ${lost} lost`),
    exportEveryMs: 5,
    retryMs: 20,
  })
  return { queue, said }
}

describe('SpanQueue', () => {
  test('sends spans together, and all of them at the end', async () => {
    const sent: number[] = []
    const { queue } = queueWith(async (spans) => {
      sent.push(spans.length)
      return 0
    })
    for (let n = 0; n < 3; n++) queue.add(spanOf())
    await sleep(50)
    for (let n = 0; n < 600; n++) queue.add(spanOf())
    await queue.close(1000)
    assert.equal(sent[0], 3)
    assert.ok(Math.max(...sent) <= 256)
    assert.deepEqual(queue.counts, { sent: 603, refused: 0, lost: 0 })
  })

  test('counts spans that the collector rejects as lost, and never more than it got', async () => {
    for (const [rejected, counts] of [
      [2, { sent: 1, refused: 0, lost: 2 }],
      [100, { sent: 0, refused: 0, lost: 3 }],
      [-1, { sent: 3, refused: 0, lost: 0 }],
    ] as const) {
      const { queue, said } = queueWith(async () => rejected)
      for (let n = 0; n < 3; n++) queue.add(spanOf())
      await queue.close(1000)
      assert.deepEqual([queue.counts, said], [counts, []])
    }
  })

  test('does not grow, and nobody waits, while the collector hangs', async () => {
    const { queue } = queueWith(() => new Promise(() => {}), 100)
    for (let n = 0; n < 50; n++) queue.add(spanOf())
    await sleep(20)
    for (let n = 0; n < 10_000; n++) queue.add(spanOf())
    assert.equal(queue.waiting, 100)
    assert.equal(queue.counts.refused, 9_900)
    const startedAt = performance.now()
    await queue.close(50)
    assert.ok(performance.now() - startedAt < 1000)
    assert.equal(queue.counts.lost, 100)
  })

  test('limits the waiting spans by size as well', () => {
    const { queue } = queueWith(() => new Promise(() => {}), 1e6)
    const span = spanOf()
    for (let n = 0; n < 100; n++) span.link(span.context)
    for (let n = 0; n < 10_000; n++) queue.add(span)
    assert.ok(queue.waiting * span.bytes <= 8 * 1024 * 1024)
    assert.ok(queue.counts.refused > 9_000)
  })

  test('counts the texts of a span, and limits an export by size', async () => {
    const sent: number[] = []
    const { queue } = queueWith(async (spans) => {
      sent.push(spans.reduce((sum, { bytes }) => sum + bytes, 0))
      return 0
    })
    for (let n = 0; n < 300; n++) {
      const span = spanOf()
      const before = span.bytes
      span.set('namespace', 'x'.repeat(1000))
      assert.ok(span.bytes >= before + 1000)
      for (let link = 0; link < 50; link++) span.link(span.context)
      queue.add(span)
    }
    await queue.close(1000)
    assert.equal(queue.counts.sent, 300)
    assert.ok(sent.length > 5 && Math.max(...sent) <= 256 * 1024, `${sent}`)
  })

  test('sends a span that is added just when an export ends', async () => {
    for (let depth = 0; depth < 10; depth++) {
      let sends = 0
      const { queue } = queueWith(async () => {
        sends += 1
        if (sends === 1) void addAfter(depth)
        return 0
      })
      const addAfter = async (microtasks: number): Promise<void> => {
        for (let n = 0; n < microtasks; n++) await undefined
        queue.add(spanOf())
      }
      queue.add(spanOf())
      await sleep(50)
      assert.equal(queue.counts.sent, 2, `after ${depth} microtasks`)
    }
  })

  test('reports a collector that is down once, and again when it is back', async () => {
    let isDown = true
    const { queue, said } = queueWith(async () => {
      if (isDown) throw new Error('refused')
      return 0
    })
    queue.add(spanOf())
    await sleep(60)
    queue.add(spanOf())
    await sleep(60)
    isDown = false
    queue.add(spanOf())
    await sleep(100)
    assert.deepEqual(said, ['failing: Error: refused', 'recovered, 2 lost'])
    assert.deepEqual(queue.counts, { sent: 1, refused: 0, lost: 2 })
  })
})
