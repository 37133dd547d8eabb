/**
 * Records the scenarios from a real etcd: `[ETCD=...] node test/simulation/etcd/record.ts [name]`. Run it
 * with every etcd when a scenario changes, and read the difference. Those of a later release than 3.5 are
 * kept only where they differ.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { isDeepStrictEqual, promisify } from 'node:util'
import { versionOf } from '../../../tools/other-etcds.ts'
import { EtcdMember, etcdBinary, etcdctlBinary, etcdutlBinary } from '../../support/etcd.ts'
import { reserveEtcdPorts } from '../../support/ports.ts'
import { play, quietMs, sentMs, type Target } from './checks/play.ts'
import { RealMember, type RealStream } from './checks/real-member.ts'
import { recordedBy, recordedFile } from './checks/recordings.ts'
import { type Scenario, scenarios } from './checks/scenarios.ts'
import { type CallReply, releaseOf } from './contract.ts'

const run = promisify(execFile)
const name = 'm0'

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

class RealTarget implements Target {
  readonly #folder: string
  readonly #member: EtcdMember
  #client: RealMember
  readonly #streams = new Map<string, RealStream>()

  static async start(scenario: Scenario): Promise<RealTarget> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-record-'))
    const ports = await reserveEtcdPorts()
    const quota = scenario.quotaBytes === 0 ? [] : [`--quota-backend-bytes=${scenario.quotaBytes}`]
    const member = new EtcdMember({
      binary: etcdBinary,
      name,
      dataDir: join(folder, 'data'),
      ports,
      cluster: [{ name, peerPort: ports.peer }],
      args: ['--unsafe-no-fsync', ...quota],
    })
    await member.start()
    await pause(1_500)
    return new RealTarget(folder, member)
  }

  private constructor(folder: string, member: EtcdMember) {
    this.#folder = folder
    this.#member = member
    this.#client = new RealMember(member.endpoint)
  }

  call(path: string, request: Buffer): Promise<CallReply> {
    return this.#client.call(path, request)
  }

  async watch(stream: string, request: Buffer): Promise<void> {
    let open = this.#streams.get(stream)
    if (open === undefined) {
      open = this.#client.watch()
      this.#streams.set(stream, open)
    }
    open.write(request)
    await pause(sentMs)
  }

  async messages(stream: string): Promise<readonly Buffer[]> {
    await pause(quietMs)
    return this.#streams.get(stream)?.messages.splice(0) ?? []
  }

  wait(ms: number): Promise<void> {
    return pause(ms)
  }

  async restart(): Promise<void> {
    this.#disconnect()
    await this.#member.kill()
    await this.#startAgain()
  }

  async snapshot(): Promise<void> {
    const { ports } = this.#member
    const endpoint = `--endpoints=127.0.0.1:${ports.client}`
    await run(etcdctlBinary, [endpoint, 'snapshot', 'save', join(this.#folder, 'snapshot')])
  }

  async restore(bump: number): Promise<void> {
    this.#disconnect()
    await this.#member.kill()
    await rm(this.#member.dataDir, { recursive: true })
    const peer = `http://127.0.0.1:${this.#member.ports.peer}`
    await run(etcdutlBinary, [
      'snapshot',
      'restore',
      join(this.#folder, 'snapshot'),
      `--data-dir=${this.#member.dataDir}`,
      `--name=${name}`,
      `--initial-cluster=${name}=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      ...(bump === 0 ? [] : [`--bump-revision=${bump}`, '--mark-compacted']),
    ])
    await this.#startAgain()
  }

  async close(): Promise<void> {
    this.#disconnect()
    await this.#member.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #startAgain(): Promise<void> {
    await this.#member.start({ waitForQuorum: false })
    this.#client = new RealMember(this.#member.endpoint)
    // Until it is the leader.
    await this.#client.call('KV/Range', Buffer.from('CgFh', 'base64'))
  }

  #disconnect(): void {
    for (const stream of this.#streams.values()) stream.close()
    this.#streams.clear()
    this.#client.close()
  }
}

const release = releaseOf(versionOf(etcdBinary))
for (const scenario of scenarios) {
  if (process.argv[2] !== undefined && process.argv[2] !== scenario.name) continue
  const target = await RealTarget.start(scenario)
  try {
    const recording = await play(scenario, target)
    const lines = recording.map((entry) => `  ${JSON.stringify(entry)}`)
    const isNew =
      release === '3.5' || !isDeepStrictEqual(recording, recordedBy('3.5', scenario.name))
    const file = recordedFile(release, scenario.name)
    if (isNew) await writeFile(file, `[\n${lines.join(',\n')}\n]\n`)
    else await rm(file, { force: true })
    const kept = isNew ? 'recorded' : 'as with 3.5'
    process.stdout.write(`${scenario.name}: ${recording.length} steps, ${kept}\n`)
  } finally {
    await target.close()
  }
}
