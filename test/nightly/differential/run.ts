/**
 * KUBE_APISERVER=/path/to/kube-apiserver npm test -- differential [--seed N] [--requests N]
 *   [--verbs create,list] [--at N] [--parallel N] [--explain]
 *
 * Sends sequences of random requests to this server and to a real Kubernetes API server, and
 * compares the responses. Exits with 1 when a difference is not in docs/reference/compatibility.md, and with
 * 2 when there is no API server to compare with. `--at` repeats one sequence of a seed; `--explain`
 * shows the differences that each row of that page explained.
 *
 * A difference counts when it appears again when its sequence is repeated. One that does not is
 * caused by timing: a compaction, the second at which a watch ends, a busy machine. Those are
 * printed and counted, too. A few of them are normal on a busy machine; more than UNREPEATED_MAX in
 * 100,000 requests fail the run, since a race in one of the servers looks the same.
 */
import { exit, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import { kubeApiserverBinary } from '../../support/kube-apiserver.ts'
import { sequenceAt } from './generators/sequence.ts'
import { type Difference, type KnownFound, Player } from './play.ts'
import { startServers } from './servers.ts'
import { shownStep, VERBS, type Verb } from './step.ts'

const { values: given } = parseArgs({
  options: {
    seed: { type: 'string' },
    requests: { type: 'string', default: '20000' },
    verbs: { type: 'string' },
    at: { type: 'string' },
    parallel: { type: 'string', default: '16' },
    explain: { type: 'boolean', default: false },
  },
})
const PLACES_SHOWN = 5
const PROGRESS_REQUESTS = 20_000
/** Allowed per 100,000 requests. */
const UNREPEATED_MAX = 5

if (kubeApiserverBinary === '') {
  say('differential: did NOT run: KUBE_APISERVER is not set')
  say('Set it to the path of a kube-apiserver binary, version 1.37, and run this again:')
  say('  KUBE_APISERVER=/path/to/kube-apiserver npm test -- differential')
  say('Kubernetes publishes the binary with each release, among the server binaries.')
  exit(2)
}

const seed = Number(given.seed ?? Math.floor(Math.random() * 2 ** 31))
const requests = Number(given.requests)
const verbs = given.verbs === undefined ? undefined : new Set(given.verbs.split(',').map(verbOf))

const seen = new Map<string, number>()
/** Counts keyed by row, then by signature. */
const known = new Map<string, Map<string, number>>()
/**
 * Differences that did not appear when the sequence was repeated: caused by timing, most likely.
 */
const unrepeated: string[] = []
say(`seed ${seed}`)
const isFine = await run()
exit(isFine ? 0 : 1)

async function run(): Promise<boolean> {
  await using servers = await startServers()
  const player = new Player(servers)
  const startedAt = performance.now()
  let next = Number(given.at ?? 0)
  let progress = PROGRESS_REQUESTS
  const work = async (): Promise<void> => {
    while (given.at === undefined ? player.compared < requests : next === Number(given.at)) {
      const index = next++
      const played = await player.play(sequenceAt({ seed, verbs }, index))
      for (const one of played.known) count(one)
      for (const difference of played.differences) await report(player, difference, index)
      if (player.compared >= progress) {
        progress += PROGRESS_REQUESTS
        say(`… ${player.compared} requests, ${seen.size} unknown differences`)
      }
    }
  }
  await Promise.all(
    Array.from({ length: given.at === undefined ? Number(given.parallel) : 1 }, work),
  )
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  for (const [signature, count] of seen) say(`${count} x ${signature}`)
  for (const signature of unrepeated) say(`not repeated: ${signature}`)
  for (const [row, signatures] of [...known].sort()) sayKnown(row, signatures)
  say(
    `seed ${seed}: ${player.compared} requests compared in ${seconds} s, ${seen.size} unknown differences, ${unrepeated.length} that did not repeat`,
  )
  const unrepeatedMax = UNREPEATED_MAX * Math.ceil(player.compared / 100_000)
  return seen.size === 0 && unrepeated.length <= unrepeatedMax
}

function count({ row, signature }: KnownFound): void {
  const signatures = known.get(row) ?? new Map<string, number>()
  known.set(row, signatures.set(signature, (signatures.get(signature) ?? 0) + 1))
}

function sayKnown(row: string, signatures: ReadonlyMap<string, number>): void {
  const total = [...signatures.values()].reduce((sum, times) => sum + times, 0)
  say(`known: ${row} ${total}`)
  if (!given.explain) return
  for (const [signature, times] of signatures) say(`    ${times} x ${signature}`)
}

async function report(player: Player, difference: Difference, index: number): Promise<void> {
  const again = await player.play(difference.steps)
  if (!again.differences.some(({ signature }) => signature === difference.signature)) {
    unrepeated.push(`${difference.signature} (--seed ${seed} --at ${index})`)
    return
  }
  const count = seen.get(difference.signature)
  seen.set(difference.signature, (count ?? 0) + 1)
  if (count !== undefined) return
  const { steps, places, signature } = await player.shrink(difference)
  say(`\n## ${signature} (--seed ${seed} --at ${index})`)
  for (const step of steps) say(`  ${shownStep(step)}`)
  for (const place of places.slice(0, PLACES_SHOWN)) say(`    ${place}`)
}

function verbOf(text: string): Verb {
  const verb = VERBS.find((candidate) => candidate === text)
  if (verb === undefined) throw new Error(`no such verb: ${text}`)
  return verb
}

function say(line: string): void {
  stdout.write(`${line}\n`)
}
