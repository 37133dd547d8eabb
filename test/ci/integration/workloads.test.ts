/** The smaller version of `npm run workloads`. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { normalised, patternOf } from '../../../src/incidents/pattern.ts'
import { judge, percent, problemsOf, rightShare, SOURCES } from '../../support/judged-workloads.ts'
import { generatedName, madeWorkloads, safeEncoded } from '../../support/made-workloads.ts'
import { nightStory } from '../../support/night-story.ts'
import { Random } from '../../support/random.ts'
import { realisticEvents } from '../../support/realistic-events.ts'
import { testSeed } from '../../support/seed.ts'

describe('the workloads of 5,000 pods', () => {
  const seed = testSeed()
  const pods = madeWorkloads({ seed, workloads: 250, pods: 5_000 })

  test('are told by names, events and owners', (context) => {
    const judgement = judge(pods, seed)
    const shares = SOURCES.map((source) => `${source} ${percent(rightShare(judgement, source))}`)
    context.diagnostic(`seed ${seed}: ${shares.join(', ')}`)
    assert.deepEqual(problemsOf(judgement), [])
  })

  test('a wrong rule, and an assignment across namespaces, are found', () => {
    const withoutNames = judge(pods, seed, (tell) => (cluster, fields) => {
      const found = tell(cluster, fields)
      return found.kind === 'StatefulSet' ? { ...found, kind: 'DaemonSet' } : found
    })
    assert.ok(problemsOf(withoutNames).some((problem) => problem.startsWith('by owners')))
    const crossing = judge(pods, seed, (tell) => (cluster, fields) => {
      const regarding = { ...fields.regarding, namespace: 'elsewhere' }
      return tell(cluster, { ...fields, regarding })
    })
    assert.ok(problemsOf(crossing).some((problem) => problem.includes('another namespace')))
  })

  test('have the names that Kubernetes generates', () => {
    assert.equal(safeEncoded('0123456789'), '456789bcdf')
    const random = new Random(seed)
    assert.match(generatedName('web-', random), /^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    assert.equal(generatedName('x'.repeat(80), random).length, 63)
  })
})

describe('the patterns of stored notes', () => {
  test('are equal where the normalised notes are, and only there', () => {
    const events = realisticEvents({ seed: 5, count: 3_000, nowMs: 1_800_000_000_000 })
    const notes = [...events, ...nightStory()].map(({ note }) => String(note))
    const patterns = new Map(notes.map((note) => [normalised(note), patternOf(note)]))
    for (const note of notes) assert.equal(patternOf(note), patterns.get(normalised(note)), note)
    assert.equal(new Set(patterns.values()).size, patterns.size)
    assert.ok(patterns.size < 60, `${patterns.size} patterns`)
  })
})
