/**
 * This build against another, over TLS, by the CPU time of each request:
 *   npm run bench -- compare /path/to/another/dist/main.js [rounds, default 7]
 *
 * Both run side by side on one etcd and are loaded alternately, in an order that changes with each
 * round, so that variations of the machine affect both. Needs h2load (of nghttp2). Exits with 1
 * when this build needs more than 1.05 times as much CPU time for one of the loads.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { argv } from 'node:process'
import { DevCredentials } from '../src/dev/credentials.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { Tidings } from '../test/support/tidings.ts'
import { costOf, median, openLoads, type RequestLoad } from './support/request-costs.ts'

const RATIO_MAX = 1.05

const [, , otherProgram, roundsText = '7'] = argv
if (otherProgram === undefined) throw new Error('give the dist/main.js of another build')

await using cleanup = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
cleanup.defer(() => rm(folder, { recursive: true, force: true }))
const access = await DevCredentials.create(folder)
await using etcd = await startEtcd({ args: ['--quota-backend-bytes=8589934592'] })

interface Build {
  readonly server: Tidings
  readonly loads: ReadonlyMap<string, RequestLoad>
}

const builds = [await open('this', undefined), await open('other', resolve(otherProgram))] as const
for (const name of builds[0].loads.keys()) await compare(name)

async function open(prefix: string, program: string | undefined): Promise<Build> {
  const server = await Tidings.start(
    [
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--etcd-prefix=/${prefix}`,
      `--token-auth-file=${access.tokenFile}`,
    ],
    {},
    program,
  )
  cleanup.use(server)
  return { server, loads: await openLoads(server, access.token) }
}

async function compare(name: string): Promise<void> {
  const used = builds.map((): number[] => [])
  // The first round warms up.
  for (let round = 0; round <= Number(roundsText); round++) {
    for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const build = builds[index]
      if (build === undefined) continue
      const micros = await costOf(build.server, build.loads.get(name))
      if (round > 0) used[index]?.push(micros)
    }
  }
  const [ours = Number.NaN, theirs = Number.NaN] = used.map(median)
  const ratio = ours / theirs
  const isMet = ratio <= RATIO_MAX
  if (!isMet) process.exitCode = 1
  process.stdout.write(
    `${name.padEnd(16)} ${ours.toFixed(1)} µs of the processor, other ${theirs.toFixed(1)} µs: ` +
      `${ratio.toFixed(3)}, wanted ${RATIO_MAX}: ${isMet ? 'met' : 'MISSED'}\n`,
  )
}
