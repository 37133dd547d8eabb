import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'

/**
 * Another host: a network namespace connected to this machine by a virtual cable. Needs root and
 * the `ip` program. The addresses are from the block that is reserved for tests of network devices.
 */
export class NeighbourHost implements Disposable {
  /** The address of this machine, seen from the namespace. */
  readonly ourAddress: string
  readonly #name: string

  constructor() {
    const id = `${process.pid}`
    const subnet = process.pid % 16_384
    const base = `198.18.${subnet >> 6}.${(subnet & 63) * 4}`.split('.').map(Number)
    const at = (offset: number): string => [...base.slice(0, 3), (base[3] ?? 0) + offset].join('.')
    this.#name = `tidings-${id}`
    this.ourAddress = at(1)
    const [near, far] = [`td${id}a`, `td${id}b`]
    ip('netns', 'add', this.#name)
    ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', this.#name)
    ip('addr', 'add', `${at(1)}/30`, 'dev', near)
    ip('link', 'set', near, 'up')
    ip('-n', this.#name, 'addr', 'add', `${at(2)}/30`, 'dev', far)
    ip('-n', this.#name, 'link', 'set', far, 'up')
  }

  /** Runs a program in the namespace; resolves to its standard output. */
  async run(program: string, args: readonly string[]): Promise<string> {
    const child = spawn('ip', ['netns', 'exec', this.#name, program, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`${program} ended with ${code}`)
    return Buffer.concat(chunks).toString('utf8')
  }

  [Symbol.dispose](): void {
    // The cable is removed with the namespace at its end.
    ip('netns', 'del', this.#name)
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' })
}
