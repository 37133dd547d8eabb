/**
 * KUBE_APISERVER=/path/to/kube-apiserver npm run record [-- --suite list,watch]
 *
 * Sends the requests of the recordings to a real Kubernetes API server and writes its responses into
 * them. A response that is equal to the recorded one is left as it is, so `git diff` shows what has
 * changed between two releases of Kubernetes, and nothing else.
 */
import { execFileSync } from 'node:child_process'
import { exit, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import {
  KubeApiserver,
  kubeApiserverBinary,
  withoutKubeApiserver,
} from '../../support/kube-apiserver.ts'
import { Client } from './client.ts'
import { namespaceOf, play } from './play.ts'
import { recordedAnswer } from './recorded-answer.ts'
import { fileOf, loadRecording, type Recording, SUITES, writeRecording } from './recording.ts'

/** The user of the recorded requests, and one without permissions. */
const TOKENS = [
  { token: 'admin-token', user: 'admin', groups: ['system:masters'] },
  { token: 'nobody-token', user: 'nobody' },
]
/** Responses contain it; the port that the server listens on is another one in each run. */
const ADDRESS = '192.0.2.2:6443'

const { values: given } = parseArgs({
  options: { suite: { type: 'string', default: SUITES.join(',') } },
})
if (withoutKubeApiserver !== false) {
  stdout.write(`record: ${withoutKubeApiserver}\n`)
  exit(2)
}

stdout.write(`recording ${kubeApiserverBinary}\n`)
const suites = given.suite.split(',')
const failed = await recordAll()
execFileSync('biome', ['format', '--write', ...suites.map(fileOf)])
exit(failed === 0 ? 0 : 1)

/** Returns the number of steps without a response; they stay as they are. */
async function recordAll(): Promise<number> {
  await using server = await KubeApiserver.start({
    tokens: TOKENS,
    flags: [`--external-hostname=${ADDRESS}`],
  })
  using client = new Client(`https://127.0.0.1:${server.port}`, { ca: server.ca })
  const player = { client, token: 'admin-token', run: 'recorded' }
  let missing = 0
  for (const recording of suites.map((suite) => loadRecording(suite))) {
    missing += await record(recording, player)
  }
  return missing
}

async function record(recording: Recording, player: Parameters<typeof play>[1]): Promise<number> {
  const theirs = recording.steps.map(({ ours: _, ...step }) => step)
  const results = await play({ ...recording, steps: theirs }, player)
  const place = {
    namespace: namespaceOf(recording, player),
    hasManagedFields: recording.suite === 'apply',
  }
  const steps = recording.steps.map((step, index) => {
    const answer = results[index]?.answer
    return answer === undefined ? step : { ...step, answer: recordedAnswer(step, answer, place) }
  })
  writeRecording({ ...recording, steps })
  const missing = results.filter(({ answer }) => answer === undefined)
  for (const { index, wrong } of missing) {
    stdout.write(`${recording.suite}[${index}] ${wrong.join()}\n`)
  }
  const changed = steps.filter((step, index) => step.answer !== recording.steps[index]?.answer)
  stdout.write(`${recording.suite}: ${changed.length} of ${steps.length} steps changed\n`)
  return missing.length
}
