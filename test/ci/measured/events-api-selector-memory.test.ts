/**
 * Memory that a watch keeps of its query and its selectors: not the text that they are substrings
 * of, and one copy of equal selectors.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Response } from '../../../src/http/exchange.ts'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { inParallel } from '../../support/load.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const WATCHES = 300
/**
 * Nearly the longest list of values that is allowed; the longest part of a query is not a selector.
 */
const VALUES = 1000
const NOISE = 'x'.repeat(40_000)

describe('memory that watches keep of their queries', () => {
  let api: EventApiUnderTest
  withEventApi({
    begin: (started) => {
      api = started
    },
  })

  /** Heap bytes for each watch, with the query that `queryOf` makes for it. */
  async function bytesPerWatch(queryOf: (index: number) => string): Promise<number> {
    const end = new AbortController()
    const before = await heldBytes()
    const streams: AsyncIterator<unknown>[] = []
    const ends: Promise<unknown>[] = []
    await inParallel(WATCHES, 10, async (index) => {
      const { status, body } = await begin(queryOf(index), end.signal)
      assert.equal(status, 200)
      const stream = (body as AsyncIterable<unknown>)[Symbol.asyncIterator]()
      streams.push(stream)
      ends.push(stream.next())
    })
    const held = (await heldBytes()) - before
    assert.equal(streams.length, WATCHES)
    end.abort()
    await Promise.all(ends)
    return held / WATCHES
  }

  function begin(query: string, signal: AbortSignal): Promise<Response> {
    return api.handler({
      method: 'GET',
      path: '/apis/events.k8s.io/v1/namespaces/default/events',
      // Made here, so that only the parts that the watch references stay in memory.
      query: new URLSearchParams(`watch=true&resourceVersion=1000000000000999&${query}`),
      headers: { authorization: 'Bearer secret' },
      peer: { address: '127.0.0.1', isLoopback: true, clientCertificate: () => undefined },
      signal,
      body: async () => Buffer.alloc(0),
    })
  }

  async function heldBytes(): Promise<number> {
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      collect()
    }
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  const values = (index: number): string =>
    Array.from({ length: VALUES }, (_, n) => (n * WATCHES + index).toString(36)).join(',')

  test('a watch keeps a few kilobytes, whatever its query is', async (context) => {
    const plain = await bytesPerWatch(() => '')
    const noisy = await bytesPerWatch((index) => `${NOISE}=${index}`)
    const distinct = await bytesPerWatch(
      (index) => `labelSelector=k notin (${values(index)})&${NOISE}=1`,
    )
    const equal = await bytesPerWatch(() => `labelSelector=k notin (${values(0)})&${NOISE}=1`)
    const fields = await bytesPerWatch((index) => {
      const terms = Array.from({ length: 100 }, (_, n) => `reason!=${'r'.repeat(60)}${index}-${n}`)
      return `fieldSelector=${terms.join(',')}&${NOISE}=1`
    })
    const several = await bytesPerWatch((index) => {
      const terms = Array.from({ length: 4 }, (_, n) => {
        const values = Array.from({ length: 25 }, (_, m) => `${'r'.repeat(60)}${index}-${n}-${m}`)
        return `reason!=${values.join('|')}`
      })
      return `fieldSelector=${terms.join(',')}&${NOISE}=1`
    })
    const figures = { plain, noisy, distinct, equal, fields, several }
    for (const [name, bytes] of Object.entries(figures)) {
      context.diagnostic(`${name}: ${Math.round(bytes)} bytes a watch`)
    }
    assert.ok(noisy < plain + 1000, `a long query: ${noisy} bytes`)
    assert.ok(distinct < plain + 9000, `each its own selector: ${distinct} bytes`)
    assert.ok(equal < plain + 1000, `all the same selector: ${equal} bytes`)
    assert.ok(fields < plain + 24_000, `many fields: ${fields} bytes`)
    assert.ok(several < plain + 24_000, `many values: ${several} bytes`)
  })
})
