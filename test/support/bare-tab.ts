import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { browserProgram } from './browser.ts'
import { eventually } from './eventually.ts'

export interface TabMemory {
  /** Memory of the tab's process that it shares with no other process. */
  readonly privateMib: number
  /** The part of it that JavaScript objects take, garbage included. */
  readonly heapMib: number
}

const MIB = 2 ** 20
/** Even an empty tab has more: with less, something else was measured, or nothing. */
const TAB_MIB_MIN = 10
const ARGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--ignore-certificate-errors',
  '--no-first-run',
  '--disable-extensions',
  '--remote-debugging-port=0',
]

/**
 * A tab whose network nobody records: playwright has the browser keep up to 200 MB of responses in
 * the process of the tab, which would be measured as well.
 */
export class BareTab implements AsyncDisposable {
  readonly #browser: ChildProcess
  readonly #folder: string
  readonly #socket: WebSocket
  #last = 0

  static async open(url: string): Promise<BareTab> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-tab-'))
    const args = [...ARGS, `--user-data-dir=${folder}`, url]
    const browser = spawn(browserProgram, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    if (browser.stderr === null) throw new Error('the browser has no standard error')
    const lines = createInterface({ input: browser.stderr })
    let port = ''
    lines.on('line', (line) => {
      port ||= /^DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)\//.exec(line)?.[1] ?? ''
    })
    await eventually('the browser listens', () => port !== '', 30_000)
    const pages = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as readonly {
      readonly type: string
      readonly webSocketDebuggerUrl: string
    }[]
    const page = pages.find(({ type }) => type === 'page')
    if (page === undefined) throw new Error('the browser has no tab')
    const socket = new WebSocket(page.webSocketDebuggerUrl)
    await once(socket, 'open')
    return new BareTab({ browser, folder, socket })
  }

  private constructor(parts: { browser: ChildProcess; folder: string; socket: WebSocket }) {
    this.#browser = parts.browser
    this.#folder = parts.folder
    this.#socket = parts.socket
  }

  /** Runs in every document that is loaded from now on, before its own scripts. */
  async addScript(source: string): Promise<void> {
    await this.#send('Page.enable')
    await this.#send('Page.addScriptToEvaluateOnNewDocument', { source })
  }

  /** The value of an expression in the page. */
  async evaluate<Value>(expression: string): Promise<Value> {
    const parameters = { expression, returnByValue: true, awaitPromise: true }
    const { result } = await this.#send<{ readonly result: { readonly value: Value } }>(
      'Runtime.evaluate',
      parameters,
    )
    return result.value
  }

  async until(expression: string, waitMsMax = 30_000): Promise<void> {
    await eventually(expression, () => this.evaluate<boolean>(expression), waitMsMax)
  }

  /** Measures without a garbage collection first. Fails if the tab was not found. */
  async memory(): Promise<TabMemory> {
    await this.#send('Performance.enable')
    const { metrics } = await this.#send<{
      readonly metrics: readonly { readonly name: string; readonly value: number }[]
    }>('Performance.getMetrics')
    const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN
    const privateMib = (await largestRendererKib(this.#browser.pid ?? 0)) / 1024
    if (!(privateMib >= TAB_MIB_MIN)) throw new Error(`no tab is as small as ${privateMib} MiB`)
    return { privateMib, heapMib: heap / MIB }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    const ended = once(this.#browser, 'exit')
    this.#browser.kill('SIGTERM')
    await ended
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  async #send<Result>(method: string, parameters: object = {}): Promise<Result> {
    const id = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const onMessage = ({ data }: MessageEvent): void => {
      const message = JSON.parse(String(data))
      if (message.id !== id) return
      this.#socket.removeEventListener('message', onMessage)
      if (message.error === undefined) resolve(message.result)
      else reject(new Error(`${method}: ${message.error.message}`))
    }
    this.#socket.addEventListener('message', onMessage)
    this.#socket.send(JSON.stringify({ id, method, params: parameters }))
    return await promise
  }
}

/** The other ones are spare. */
async function largestRendererKib(browser: number): Promise<number> {
  const processes = await descendants(browser)
  const commands = await Promise.all(processes.map((pid) => procFile(pid, 'cmdline')))
  const renderers = processes.filter((_, index) => commands[index]?.includes('--type=renderer'))
  return Math.max(...(await Promise.all(renderers.map(privateKibOf))))
}

async function descendants(pid: number): Promise<readonly number[]> {
  const children = (await procFile(pid, `task/${pid}/children`)).trim().split(' ').filter(Boolean)
  const deeper = await Promise.all(children.map((child) => descendants(Number(child))))
  return [...children.map(Number), ...deeper.flat()]
}

/** Empty for a process that has just ended. */
function procFile(pid: number, name: string): Promise<string> {
  return readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')
}

async function privateKibOf(pid: number): Promise<number> {
  const text = await procFile(pid, 'smaps_rollup')
  return [...text.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)].reduce(
    (sum, [, kib]) => sum + Number(kib),
    0,
  )
}
