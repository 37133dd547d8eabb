/**
 * The load of `npm test -- memory` at a fifth of its size and for half a minute: the memory of a
 * replica with a small limit is bounded, and its watchers receive everything.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, steadyLoad } from '../memory/steady.ts'

const LOAD = { events: 20_000, watchers: 50, perSecond: 200, seconds: 30, sampleSeconds: 3 }
/** 190 to 215 are usual. It was 290 to 315 with the heap of a large machine. */
const MOST_MIB = 250
const LIMIT_MIB = 384

test('memory: a replica with a small limit stays far below it, and watchers miss nothing', async (t) => {
  const flags = [`--memory-limit=${LIMIT_MIB}Mi`]
  const nodeOptions = '--max-semi-space-size=8 --max-old-space-size=192'
  const report = await steadyLoad({
    ...LOAD,
    flags,
    nodeOptions,
    say: (line) => t.diagnostic(line),
  })
  assert.deepEqual(complaints(report, { mostMib: MOST_MIB, limitMib: LIMIT_MIB }), [])
  assert.ok(report.created > (LOAD.perSecond * LOAD.seconds) / 4, String(report.created))
})
