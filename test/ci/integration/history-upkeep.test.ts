import assert from 'node:assert/strict'
import { utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Term } from '../../../src/election/term.ts'
import { ArchiveFiles } from '../../../src/history/archive-files.ts'
import { NO_FILES } from '../../../src/history/catalogue.ts'
import type { InputFile } from '../../../src/history/engine/protocol.ts'
import { writeJobsOf } from '../../../src/history/engine/writer.ts'
import { dateOf } from '../../../src/history/manifest.ts'
import { Upkeep } from '../../../src/history/write/upkeep.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import type { HistoryClass } from '../../../src/retention/history-policy.ts'
import { HistoryPolicy } from '../../../src/retention/history-policy.ts'
import { archiveRows } from '../../support/archive-rows.ts'
import { ArchiveSite, Crash, prefix } from '../../support/archive-site.ts'

const DAY = 86_400_000
/** Midnight, nine days ago. */
const begin = Math.floor(Date.now() / DAY) * DAY - 9 * DAY
const dates = [0, 1, 2].map((day) => dateOf(begin + day * DAY))
const forever: readonly HistoryClass[] = [{ requires: {}, keepMs: Number.POSITIVE_INFINITY }]
const term: Term = {
  signal: new AbortController().signal,
  revision: 0,
  isHeld: () => true,
  heldUntil: Number.POSITIVE_INFINITY,
}
/** The key of the election does not exist, and so has the revision 0. */
const fence = { key: `${prefix}/control/nobody`, revision: 0 }

async function upkeepOf(
  site: ArchiveSite,
  {
    classes = forever,
    nowMs,
    onMerged = async () => {},
  }: {
    readonly classes?: readonly HistoryClass[]
    readonly nowMs: number
    /** Called before a merged file is committed. */
    readonly onMerged?: (inputs: readonly InputFile[]) => Promise<void>
  },
) {
  const files = await ArchiveFiles.open({
    url: `file://${site.folder}/store`,
    cacheDir: join(site.folder, 'upkeep'),
    cacheBytes: 2 ** 30,
  })
  const jobs = writeJobsOf(await files.writer('merge', { memoryBytes: 128 * 2 ** 20 }))
  const upkeep = new Upkeep({
    catalogue: site.catalogue(),
    store: site.store,
    cache: files.cache,
    jobs: {
      merge: async (day, inputs, ...rest) => {
        const merged = await jobs.merge(day, inputs, ...rest)
        await onMerged(inputs)
        return merged
      },
    },
    uploads: files.uploads,
    classesOf: () => classes,
    log: silentLog,
    wallTime: () => nowMs,
  })
  return {
    upkeep,
    /** Does all that is to be done, and returns how many steps it took. */
    all: async () => {
      let steps = 0
      while (await upkeep.step(term, fence)) steps++
      return steps
    },
    [Symbol.asyncDispose]: () => files[Symbol.asyncDispose](),
  }
}

async function namesIn(site: ArchiveSite): Promise<readonly string[]> {
  const found: string[] = []
  for await (const { name } of site.store.list('', term)) found.push(name)
  return found
}

/** Events of three days, in many small segments. */
async function archivedDays(): Promise<ArchiveSite> {
  const site = await ArchiveSite.start()
  await using _archiver = await site.archive(new Crash())
  for (let round = 0; round < 6; round++) {
    const seen = new Date(begin + (round % 3) * DAY + round * 60_000).toISOString()
    await site.write([`series-${round % 3}`, `once-${round}`], seen.replace('Z', '000Z'))
    await site.archived()
  }
  return site
}

async function days(site: ArchiveSite): Promise<readonly (readonly [string, number, number])[]> {
  const current = await site.catalogue().read(term.signal)
  return (current?.manifest.days ?? []).map(({ date, files, rows }) => [date, files, rows] as const)
}

describe('the upkeep of the archive', () => {
  test('merges the files of a day that has ended, and loses and repeats nothing', async () => {
    await using site = await archivedDays()
    assert.ok((await days(site)).every(([, files]) => files > 1))
    await using kept = await upkeepOf(site, { nowMs: begin + 10 * DAY })
    assert.equal(await kept.all(), 3)
    assert.deepEqual(await days(site), [
      [dates[0], 1, 3],
      [dates[1], 1, 3],
      [dates[2], 1, 3],
    ])
    await site.check()
    assert.equal(await kept.all(), 0)
  })

  test('merges on top of what was committed meanwhile', { timeout: 60_000 }, async () => {
    await using site = await archivedDays()
    const catalogue = site.catalogue()
    const current = async () => (await catalogue.read(term.signal)) ?? assert.fail()
    let commits = 0
    const onMerged = async () => {
      const { position, positionAtMs } = (await current()).pointer
      // The position alone, and then a manifest.
      const to = { position, positionAtMs: positionAtMs + 1 }
      if (++commits === 1) await catalogue.advance(await current(), to, fence)
      else await catalogue.commit(await current(), { ...NO_FILES, position: to }, term)
    }
    await using kept = await upkeepOf(site, { nowMs: begin + 10 * DAY, onMerged })
    assert.equal(await kept.all(), 3)
    assert.equal(commits, 3)
    assert.ok((await days(site)).every(([, files]) => files === 1))
    await site.check()
  })

  test('drops a merged file when one of its parts was removed meanwhile', {
    timeout: 60_000,
  }, async () => {
    await using site = await archivedDays()
    const catalogue = site.catalogue()
    const removed: string[] = []
    const onMerged = async ([first]: readonly InputFile[]) => {
      if (first === undefined || removed.length > 0) return
      removed.push(first.file.name)
      const edit = { added: [], removed: new Set(removed) }
      await catalogue.commit(await catalogue.read(term.signal), edit, term)
    }
    await using kept = await upkeepOf(site, { nowMs: begin + 10 * DAY, onMerged })
    await kept.all()
    assert.equal(removed.length, 1)
    assert.equal(kept.upkeep.status.merges, 2)
    assert.deepEqual(await days(site), [
      [dates[0], 1, 2],
      [dates[1], 1, 3],
      [dates[2], 1, 3],
    ])
  })

  test('removes what the policy no longer keeps, and nothing else', async () => {
    await using site = await archivedDays()
    const policy = new HistoryPolicy(
      [{ name: 'warnings', selector: { type: ['Warning'], reason: ['BackOff'] }, keep: 30 * DAY }],
      'forever',
    )
    const classes = policy.classesOf('local')
    {
      await using kept = await upkeepOf(site, { classes, nowMs: begin + 31.5 * DAY })
      await kept.all()
    }
    // The first day is over its time, the others are not. All events are of the class.
    assert.deepEqual(
      (await days(site)).map(([date]) => date),
      dates.slice(1),
    )
    {
      await using kept = await upkeepOf(site, {
        classes: [{ requires: {}, keepMs: DAY }],
        nowMs: begin + 9 * DAY,
      })
      await kept.all()
    }
    assert.deepEqual(await days(site), [])
    assert.deepEqual(await archiveRows(site.catalogue(), site.store), [])
  })

  test('deletes objects that no manifest has named for a day', async () => {
    await using site = await archivedDays()
    await using kept = await upkeepOf(site, { nowMs: begin + 10 * DAY })
    await kept.all()
    await site.store.put(`cluster=local/date=${dates[0]}/orphan.parquet`, Buffer.from('x'), term)
    await site.store.put('notes-of-somebody.txt', Buffer.from('x'), term)
    const old = new Date(Date.now() - 40 * 3_600_000)
    const before = await namesIn(site)
    for (const name of before) await utimes(site.store.localPath(name), old, old)
    await site.store.put('cluster=local/date=2026-01-01/new.parquet', Buffer.from('x'), term)
    await using later = await upkeepOf(site, { nowMs: Date.now() })
    await later.upkeep.deleteUnnamed(term, new Set())
    const left = await namesIn(site)
    assert.ok(left.includes('notes-of-somebody.txt'))
    assert.ok(!left.includes(`cluster=local/date=${dates[0]}/orphan.parquet`))
    // What was replaced a moment ago may still be read.
    const { removed } = (await site.catalogue().read(term.signal))?.manifest ?? assert.fail()
    assert.ok(removed.length > 0)
    for (const { name } of removed) assert.ok(left.includes(name), name)
    await site.check()
  })

  test('deletes nothing that may be published yet, however late, by whatever clock', async () => {
    await using site = await archivedDays()
    const late = `cluster=local/date=${dates[0]}/late.parquet`
    const fresh = `cluster=local/date=${dates[0]}/fresh.parquet`
    for (const name of [late, fresh]) await site.store.put(name, Buffer.from('x'), term)
    const old = new Date(Date.now() - 3 * DAY)
    await utimes(site.store.localPath(late), old, old)
    // By the clock of this replica, all of them are days old.
    const nowMs = Date.now() + 5 * DAY
    await using ahead = await upkeepOf(site, { nowMs })
    await ahead.upkeep.deleteUnnamed(term, new Set([late]))
    const left = await namesIn(site)
    assert.deepEqual([left.includes(late), left.includes(fresh)], [true, true])
    await using next = await upkeepOf(site, { nowMs })
    await next.upkeep.deleteUnnamed(term, new Set())
    const last = await namesIn(site)
    assert.deepEqual([last.includes(late), last.includes(fresh)], [false, true])
    await site.check()
  })
})
