import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet, type Pace } from '../rolling/fleet.ts'
import { type LoadOptions, type LoadReport, UpgradeLoad } from './load.ts'
import type { Program } from './programs.ts'

export interface UpgradeOptions {
  readonly from: Program
  readonly to: Program
  readonly load: LoadOptions
  /** Default: that of docs/how-to/proxies.md. */
  readonly pace?: Pace
  /** How often everything is upgraded and rolled back. */
  readonly rounds?: number
  /** How long all replicas run one version before the next step. */
  readonly restMs?: number
  readonly log: (line: string) => void
}

/** Upgrades three replicas one by one under load, and rolls them back one by one. */
export async function upgradeAndRollBack(options: UpgradeOptions): Promise<LoadReport> {
  const { from, to, load: size, pace, rounds = 1, restMs = 2_000, log } = options
  assert.ok(Number.isInteger(rounds) && rounds > 0, `${rounds} rounds`)
  assert.notDeepEqual(from.identity, to.identity, 'both programs are of one version and commit')
  await using fleet = await Fleet.start({
    program: from.file,
    ...(pace === undefined ? {} : { pace }),
  })
  for (let index = 0; index < fleet.size; index++) await verify(fleet, index, from)
  using load = new UpgradeLoad(fleet, size)
  await load.start()
  await sleep(restMs)
  for (let round = 0; round < rounds; round++) {
    for (const program of [to, from]) {
      for (let index = 0; index < fleet.size; index++) {
        await fleet.replace(index, program.file)
        await verify(fleet, index, program)
        log(`replica ${index} runs ${program.name}: ${Object.values(program.identity).join(' ')}`)
      }
      await sleep(restMs)
    }
  }
  return await load.end(rounds * 2 * fleet.size)
}

/** A replica runs this very program, and not what was there before. */
async function verify(fleet: Fleet, index: number, { identity }: Program): Promise<void> {
  const { gitVersion, gitCommit } = JSON.parse(await fleet.ask(index, '/version'))
  const version = String(gitVersion).replace(/^.*\+tidings-/, '')
  assert.deepEqual({ version, commit: gitCommit }, identity, `replica ${index}`)
}

/** Formats a report for people, without the faults. */
export function describeLoad(report: LoadReport): string {
  const { requests, events, deleted, changes, lists, refused, notSent, watches } = report
  return (
    `${requests} requests: ${events} events and ${deleted} deleted ones with ${changes} changes, ` +
    `${lists} complete lists; ${refused} refused and ${notSent} not sent because a replica stopped, and repeated; ` +
    `${watches.resumed} watches resumed, ${watches.received} changes received`
  )
}
