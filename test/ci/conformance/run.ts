/**
 * node test/ci/conformance/run.ts --base https://127.0.0.1:6443 [--token admin-token]
 *                              [--suite list,watch] [--step 12] [--group NAME] [--quiet]
 *
 * Plays the recordings against a server that is already running and prints each difference.
 * `--step` shows one step only (those before it are played as well), `--quiet` prints one line for
 * each suite. Exits with 1 on a difference.
 */
import { exit, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import { Client } from './client.ts'
import { play } from './play.ts'
import { loadRecording, SUITES } from './recording.ts'
import { describeResult, describeSuite } from './report.ts'

const { values: given } = parseArgs({
  options: {
    base: { type: 'string', default: 'https://127.0.0.1:6443' },
    token: { type: 'string', default: 'admin-token' },
    suite: { type: 'string', default: SUITES.join(',') },
    step: { type: 'string' },
    group: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
})

using client = new Client(given.base)
const player = {
  client,
  token: given.token,
  run: Date.now().toString(36),
}
const counts = await Promise.all(given.suite.split(',').map(playAndPrint))
const failed = counts.reduce((sum, count) => sum + count, 0)
stdout.write(failed === 0 ? 'no differences\n' : `${failed} steps differ\n`)
exit(failed === 0 ? 0 : 1)

async function playAndPrint(suite: string): Promise<number> {
  const results = await play(loadRecording(suite, given.group), player)
  const differing = results.filter(
    ({ index, wrong }) =>
      wrong.length > 0 && (given.step === undefined || index === Number(given.step)),
  )
  const lines = [
    ...(given.quiet ? [] : differing.map((result) => describeResult(suite, result))),
    describeSuite(suite, results),
  ]
  stdout.write(`${lines.join('\n')}\n`)
  return differing.length
}
