import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './eventually.ts'
import { reservePort } from './ports.ts'

const page = join(import.meta.dirname, '../../docs/how-to/proxies.md')

/** The address that proxies of tests connect from; everything else on this host uses 127.0.0.1. */
export const PROXY_ADDRESS = '127.0.0.5'

/** The configuration in docs/how-to/proxies.md below this heading. */
export function configurationIn(heading: string): string {
  const text = readFileSync(page, 'utf8')
  const at = text.indexOf(`\n## ${heading}\n`)
  const block = /^```(?:haproxy|nginx)\n([\s\S]*?)^```$/m.exec(text.slice(at))
  if (at === -1 || block?.[1] === undefined) throw new Error(`${page}: nothing at ${heading}`)
  return block[1]
}

export interface ProxyOptions {
  /** The configuration with the addresses and paths of the page. */
  readonly configuration: string
  /** Ports of the replicas 10.0.1.1, 10.0.1.2 and 10.0.1.3. */
  readonly ports: readonly number[]
  /** Contents of the files in `/etc/haproxy/` or `/etc/nginx/`, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/** A real haproxy or nginx, stopped at the end of the scope. */
export class RealProxy implements AsyncDisposable {
  readonly port: number
  readonly #folder: string
  readonly #process: ChildProcess

  static haproxy(options: ProxyOptions): Promise<RealProxy> {
    return RealProxy.#start(options, (text, config) => ({
      text: text.replace(/^(\s+)(default-server .*)$/gm, `$1source ${PROXY_ADDRESS}\n$1$2`),
      command: ['/usr/sbin/haproxy', '-db', '-f', config],
    }))
  }

  static nginx(options: ProxyOptions): Promise<RealProxy> {
    return RealProxy.#start(options, (text, config, folder) => ({
      text: `daemon off;\npid ${folder}/nginx.pid;\nerror_log stderr;\n${text
        .replace(/^(\s+)(proxy_pass .*)$/gm, `$1proxy_bind ${PROXY_ADDRESS};\n$1$2`)
        .replace(/^http \{$/m, '$&\n  access_log off;')}`,
      command: ['/usr/sbin/nginx', '-p', folder, '-c', config],
    }))
  }

  static async #start(
    { configuration, ports, files = {} }: ProxyOptions,
    adapt: (
      text: string,
      config: string,
      folder: string,
    ) => { readonly text: string; readonly command: readonly string[] },
  ): Promise<RealProxy> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-proxy-'))
    const port = await reservePort()
    const config = join(folder, 'proxy.conf')
    for (const [name, content] of Object.entries(files))
      await writeFile(join(folder, name), content)
    const text = configuration
      .replace(/bind :6443/, `bind 127.0.0.1:${port}`)
      .replace(/listen 6443/, `listen 127.0.0.1:${port}`)
      .replace(/10\.0\.1\.(\d):6443/g, (_, index) => `127.0.0.1:${ports[Number(index) - 1]}`)
      .replaceAll(/\/etc\/(?:haproxy|nginx)\//g, `${folder}/`)
    const adapted = adapt(text, config, folder)
    await writeFile(config, adapted.text)
    const [program = '', ...args] = adapted.command
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      said = (said + chunk).slice(-4000)
    })
    let isGone = false
    child.on('error', (error) => {
      said += String(error)
      isGone = true
    })
    child.on('exit', () => {
      isGone = true
    })
    const proxy = new RealProxy(child, port, folder)
    try {
      await eventually(`${program} listens`, async () => isGone || (await isListening(port)))
      if (isGone) throw new Error(`${program}: ${said}`)
      return proxy
    } catch (error) {
      await proxy[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(child: ChildProcess, port: number, folder: string) {
    this.#process = child
    this.port = port
    this.#folder = folder
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.pid !== undefined && this.#process.exitCode === null) {
      const ended = once(this.#process, 'exit')
      this.#process.kill('SIGTERM')
      await ended
    }
    await rm(this.#folder, { recursive: true, force: true })
  }
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
