/**
 * npm test -- fuzz [--seed N] [--count N] [--kind
 * body|patch|selector|token|query|yaml|accept|delete-options]
 *                 [--at N] [--input FILE] [--over in-process|socket|both]
 *                 [--light] [--slowest]
 *
 * Sends inputs to the server: `--count` of them to its handler, one in 200 and all the huge ones
 * also to the built program through sockets. Exits with 1 when a response was wrong or an input
 * blocked the event loop; such inputs are then in .cache/fuzz/. `--at` repeats one input of a seed,
 * `--input` a saved one.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exit, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import { Campaign } from './campaign.ts'
import { inputAt } from './generators/generate.ts'
import { InProcess } from './in-process.ts'
import { describeInput, type FuzzInput, KINDS, type Kind, readInput, writeInput } from './input.ts'
import { OverSocket } from './over-socket.ts'
import type { Target } from './target.ts'

const evidenceFolder = join(import.meta.dirname, '../../../.cache/fuzz')
const SOCKET_SHARE = 200
const WARM_UP = 1000

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string' },
    count: { type: 'string', default: '1000000' },
    kind: { type: 'string' },
    at: { type: 'string' },
    input: { type: 'string' },
    over: { type: 'string', default: 'both' },
    /** Leaves out the huge inputs. */
    light: { type: 'boolean', default: false },
    /** Prints the slowest inputs. */
    slowest: { type: 'boolean', default: false },
  },
})

const seed = number(given.seed) ?? Math.floor(Math.random() * 2 ** 31)
const count = number(given.count) ?? 0
const kind = kindOf(given.kind)
const only = onlyInput()

say(`seed ${seed}`)
let isBroken = false
if (given.over !== 'socket') isBroken = !(await run('in process', await InProcess.start(), count))
if (given.over !== 'in-process') {
  const share = Math.ceil(count / SOCKET_SHARE)
  isBroken = !(await run('over sockets', await OverSocket.start(), share)) || isBroken
}
exit(isBroken ? 1 : 0)

async function run(name: string, target: Target & AsyncDisposable, size: number): Promise<boolean> {
  await using _ = target
  const isTimed = target instanceof InProcess
  const campaign = new Campaign(target, { isTimed })
  await campaign.begin()
  const startedAt = performance.now()
  const seconds = (): number => (performance.now() - startedAt) / 1000
  if (only !== undefined) await campaign.runWithGreat(only)
  else {
    const onProgress = (done: number): void => say(`  ${done} after ${seconds().toFixed(0)} s`)
    await campaign.runMany({ seed: seed + 1, kind, count: Math.min(WARM_UP, size) })
    if (!given.light) await campaign.runHeavy({ seed, kind })
    await campaign.runMany({ seed, kind, count: size, onProgress })
  }
  await campaign.end()
  printSummary(name, campaign, seconds())
  return campaign.failures.length === 0
}

function printSummary(name: string, campaign: Campaign, seconds: number): void {
  const total = [...campaign.statuses.values()].reduce((sum, each) => sum + each, 0)
  say(
    `${name}: ${total} inputs in ${seconds.toFixed(1)} s, ${Math.round(total / seconds)} a second`,
  )
  const statuses = [...campaign.statuses].sort(([one], [other]) => one - other)
  say(`  answers: ${statuses.map(([status, times]) => `${times} × ${status}`).join(', ')}`)
  if (campaign.slowest.length > 0) {
    for (const { holdMs, what } of campaign.slowest.slice(0, given.slowest ? 10 : 1)) {
      say(`  held for ${holdMs.toFixed(1)} ms: ${what}`)
    }
  }
  for (const [index, { input, wrong }] of campaign.failures.entries()) {
    const file = join(evidenceFolder, `${seed}-${name.replaceAll(' ', '-')}-${index}.json`)
    mkdirSync(evidenceFolder, { recursive: true })
    writeFileSync(file, writeInput(input))
    say(`WRONG: ${describeInput(input)}`)
    for (const each of wrong) say(`  ${each.slice(0, 1500)}`)
    say(`  node test/nightly/fuzz/run.ts --input ${file}`)
  }
}

function onlyInput(): FuzzInput | undefined {
  if (given.input !== undefined) return readInput(readFileSync(given.input, 'utf8'))
  const at = number(given.at)
  return at === undefined ? undefined : inputAt({ seed, kind }, at)
}

function kindOf(text: string | undefined): Kind | undefined {
  const found = KINDS.find((name) => name === text)
  if (text !== undefined && found === undefined) throw new Error(`there is no kind ${text}`)
  return found
}

function number(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,10}$/.test(text)) throw new Error(`not a number: ${text}`)
  return Number(text)
}

function say(line: string): void {
  stdout.write(`${line}\n`)
}
