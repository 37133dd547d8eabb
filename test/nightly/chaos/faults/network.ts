/**
 * A network namespace for each etcd member, and a bridge between them and this process, so that any
 * of them can be cut off from any other, one way or both, silently, as by a broken cable.
 *
 * All of it lives in the network namespace of this process, which must be a private one (run.ts
 * sees to that), so that it is removed when this process ends, for whatever reason.
 *
 * Packets are dropped by way of the neighbour table: the sender gets a hardware address for the
 * receiver that does not exist. Connections stay open, neither side gets an error, and TCP
 * retransmits when the address is repaired.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlink } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** This process, or the number of a member. */
export type Party = 'clients' | number

const bridge = 'chaos0'
const unusedAddress = '02:00:00:00:0f:ff'

export class Network implements AsyncDisposable {
  readonly #holders: ChildProcess[] = []

  /** Creates a bridge with `members` networks. */
  static async create(members: number): Promise<Network> {
    const network = new Network()
    await ip('link', 'set', 'lo', 'up')
    await ip('link', 'add', bridge, 'address', hardwareAddress('clients'), 'type', 'bridge')
    await ip('addr', 'add', `${address('clients')}/24`, 'dev', bridge)
    await ip('link', 'set', bridge, 'up')
    for (let member = 0; member < members; member++) await network.#plugIn(member)
    await network.heal()
    return network
  }

  /** The command prefix that starts a program in the network of a member. */
  command(member: number): readonly string[] {
    const holder = this.#holders[member]
    if (holder?.pid === undefined) throw new Error(`there is no network ${member}`)
    return ['nsenter', '-t', String(holder.pid), '-n']
  }

  /** Drops everything that `from` sends to `to`. */
  async lose(from: Party, to: Party): Promise<void> {
    await this.#setNeighbour(from, to, unusedAddress)
  }

  /** Ends `lose`. */
  async restore(from: Party, to: Party): Promise<void> {
    await this.#setNeighbour(from, to, hardwareAddress(to))
  }

  /** Removes all cuts. */
  async heal(): Promise<void> {
    const parties: readonly Party[] = ['clients', ...this.#holders.keys()]
    for (const from of parties) {
      for (const to of parties) {
        if (from !== to) await this.restore(from, to)
      }
    }
  }

  /** Closes our connections with a member, also those with requests in flight. */
  async cutConnections(member: number): Promise<void> {
    await run('ss', ['--tcp', '--ipv4', '--kill', 'dst', address(member)])
  }

  /** Allows another network in this process; cleanup at exit does not depend on it. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const [member, holder] of this.#holders.entries()) {
      await ip('link', 'del', portOf(member))
      holder.kill('SIGKILL')
    }
    await ip('link', 'del', bridge)
  }

  /** A namespace exists as long as a process is in it: that is all this process is for. */
  async #plugIn(member: number): Promise<void> {
    const sleeper = ['setpriv', '--pdeathsig', 'KILL', 'sleep', 'infinity']
    const holder = spawn('unshare', ['--net', ...sleeper], { stdio: 'ignore' })
    await once(holder, 'spawn')
    this.#holders.push(holder)
    const pid = String(holder.pid)
    await untilApart(pid)
    const port = portOf(member)
    const inside = ['name', 'eth0', 'address', hardwareAddress(member), 'netns', pid]
    await ip('link', 'add', port, 'type', 'veth', 'peer', ...inside)
    await ip('link', 'set', port, 'master', bridge, 'up')
    const [program = '', ...enter] = this.command(member)
    for (const args of [
      ['link', 'set', 'lo', 'up'],
      ['addr', 'add', `${address(member)}/24`, 'dev', 'eth0'],
      ['link', 'set', 'eth0', 'up'],
    ]) {
      await run(program, [...enter, 'ip', ...args])
    }
  }

  async #setNeighbour(of: Party, neighbour: Party, hardware: string): Promise<void> {
    const args = ['neigh', 'replace', address(neighbour), 'lladdr', hardware, 'nud', 'permanent']
    if (of === 'clients') {
      await ip(...args, 'dev', bridge)
      return
    }
    const [program = '', ...enter] = this.command(of)
    await run(program, [...enter, 'ip', ...args, 'dev', 'eth0'])
  }
}

function portOf(member: number): string {
  return `chaos-m${member}`
}

export function address(party: Party): string {
  return `10.88.0.${number(party)}`
}

function hardwareAddress(party: Party): string {
  return `02:00:00:00:00:${number(party).toString(16).padStart(2, '0')}`
}

function number(party: Party): number {
  return party === 'clients' ? 1 : 11 + party
}

async function ip(...args: readonly string[]): Promise<void> {
  await run('ip', args)
}

/** Waits until the process has a network namespace other than ours. */
async function untilApart(pid: string): Promise<void> {
  const ours = await readlink('/proc/self/ns/net')
  while ((await readlink(`/proc/${pid}/ns/net`)) === ours) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
