/**
 * The recorded night, told to the recorders of client-go at its own times, by a clock that moves on
 * whenever they wait (test/nightly/client-go/night_test.go).
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { INCIDENTS, type SentEvent, type SentNight } from '../../support/night-answers.ts'
import { NightSite, whyNotNight } from '../../support/night-site.ts'
import { recordedNight } from '../../support/recorded-night.ts'
import { ADMIN_TOKEN } from '../../support/replicas.ts'
import { testSeed } from '../../support/seed.ts'
import { buildGoTests, runGoTest, whyNot } from '../client-go/program.ts'

/** Every write waits for its response, since the next may depend on it. */
const NOISE = 4_000
/** The part of all occurrences that an even distribution puts into another bucket, at most. */
const MISPLACED_SHARE_MAX = 0.02

/** See nightBook in night_test.go. */
interface Report {
  readonly seen: readonly {
    readonly atMs: number
    readonly event: string
    readonly count: number
    readonly namespace: string
    readonly about: string
    readonly type: 'Normal' | 'Warning'
    readonly reason: string
  }[]
  readonly sent: Readonly<Record<string, number>>
  readonly creates: number
  readonly patches: number
  readonly refused: readonly string[]
}

describe(`a night with ${NOISE} events of routine, by client-go`, {
  skip: whyNot || whyNotNight,
}, () => {
  const seed = testSeed()
  const night = recordedNight({ seed, noise: NOISE, nowMs: Date.now() })
  const occurrences = night.events.reduce((sum, { times }) => sum + times.length, 0)
  let folder: string
  let site: NightSite

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-night-'))
    await writeFile(join(folder, 'night.json'), JSON.stringify(happenings(night.events)))
    await buildGoTests()
    site = await NightSite.start()
  })
  after(async () => {
    await site[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const record = async (t: TestContext, recorder: string, cluster: string): Promise<Report> => {
    t.diagnostic(`seed ${seed}`)
    const report = join(folder, `${cluster}.json`)
    await runGoTest('TestNight', {
      server: `${site.server}/clusters/${cluster}`,
      token: ADMIN_TOKEN,
      night: join(folder, 'night.json'),
      recorder,
      report,
    })
    const read: Report = JSON.parse(await readFile(report, 'utf8'))
    assert.deepEqual(read.refused, [])
    t.diagnostic(`${occurrences} occurrences: ${read.creates} creates, ${read.patches} patches`)
    return read
  }

  test('core/v1 without limits: is counted exactly as it was', async (t) => {
    await record(t, 'core/v1-unlimited', 'unlimited')
    for (const { estimated, misplaced } of await site.check(t, night, 'unlimited')) {
      assert.deepEqual([estimated, misplaced], [0, 0])
    }
  })

  // It sends 25 writes about an object, then one every five minutes, and combines similar events.
  test('core/v1 as it is: what it sent is counted, exactly where it is not marked', async (t) => {
    const report = await record(t, 'core/v1', 'core')
    const sent: SentNight = { ...night, events: sentEvents(report) }
    const total = sent.events.reduce((sum, { times }) => sum + times.length, 0)
    t.diagnostic(`${occurrences - total} occurrences were never sent`)
    for (const { estimated, misplaced } of await site.check(t, sent, 'core')) {
      assert.ok(estimated > 0, 'nothing is an estimate')
      assert.ok(misplaced / total < MISPLACED_SHARE_MAX, `${misplaced} of ${total}`)
    }
  })

  // It makes one series of events that differ only by their notes: an autoscaler that scales down soon
  // after it scaled up has no event of that, and one that takes longer has. So some routine is new
  // after the rollout, which is then not among the first rows.
  const withoutRollout = INCIDENTS.filter(({ what }) => what !== 'the rollout')
  test('events.k8s.io/v1: is counted as a whole, and exactly where it is not marked', async (t) => {
    await record(t, 'events.k8s.io/v1', 'events')
    const figures = await site.check(t, night, 'events', withoutRollout)
    for (const { estimated, misplaced, total } of figures) {
      assert.ok(estimated > 0, 'nothing is an estimate')
      assert.ok(misplaced / total < MISPLACED_SHARE_MAX, `${misplaced} of ${total}`)
    }
  })
})

/** In the order of time; see night_test.go. */
function happenings(events: ReturnType<typeof recordedNight>['events']): readonly object[] {
  return events
    .flatMap(({ about, times, type, reason, note, by, host, fieldPath }) =>
      times.map((atMs) => ({
        atMs,
        component: by,
        host,
        about: { ...about, fieldPath },
        type,
        reason,
        note,
      })),
    )
    .sort((one, other) => one.atMs - other.atMs)
}

/** The events of which the server knows, with the occurrences that were counted before the last write. */
function sentEvents({ seen, sent }: Report): readonly SentEvent[] {
  const events = new Map<string, SentEvent & { readonly times: number[] }>()
  for (const { event, atMs, count, namespace, about, type, reason } of seen) {
    if (count > (sent[event] ?? 0)) continue
    const known = events.get(event)
    if (known !== undefined) known.times.push(atMs)
    else events.set(event, { about: { namespace, name: about }, type, reason, times: [atMs] })
  }
  return [...events.values()]
}
