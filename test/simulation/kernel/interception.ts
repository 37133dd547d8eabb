/**
 * Puts production code, unmodified, into the simulated world.
 *
 * - Globals of time and chance (timers, clocks, `Math.random`, `process.pid`) go to the current
 *   simulated process. Code that uses them while no process is current fails.
 * - Modules of time and chance are replaced; every function of a module that does real I/O fails.
 * - gRPC sessions are replaced by the simulated network.
 *
 * Must be imported before any production code. Faults can be planted in production code while it is
 * loaded: see `plant`.
 */
import { getEventListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { currentProcess, isWorldRunning } from './current.ts'
import type { SimulatedProcess } from './process.ts'
import type { SimulatedTimer } from './timer.ts'

/** A change of one production file, made when it is loaded. */
export interface Patch {
  /** Relative to the root of the repository. */
  readonly file: string
  /** Must occur exactly once. */
  readonly find: string
  readonly replace: string
}

const root = new URL('../../../', import.meta.url)
const ioModules = new Set([
  'child_process',
  'cluster',
  'dgram',
  'dns',
  'dns/promises',
  'fs',
  'fs/promises',
  'http',
  'http2',
  'https',
  'net',
  'timers',
  'tls',
  'v8',
  'worker_threads',
  'zlib',
])
/** Some functions of those modules that are simulated. */
const simulated = new Map([
  ['fs/promises', new URL('./fs-promises.ts', import.meta.url).href],
  ['zlib', new URL('./zlib.ts', import.meta.url).href],
])
/** Functions of those modules that do no I/O. */
const harmless = new Set(['isIP', 'isIPv4', 'isIPv6', 'checkServerIdentity'])
const replaced = new Map([
  ['node:timers/promises', new URL('./timers-promises.ts', import.meta.url).href],
  ['node:crypto', new URL('./crypto.ts', import.meta.url).href],
  ['node:os', new URL('./os.ts', import.meta.url).href],
])

/** Files of production code that are replaced wherever they are imported. */
const replacedFiles = new Map([
  [
    new URL('src/grpc/session.ts', root).href,
    new URL('../network/grpc-session.ts', import.meta.url).href,
  ],
  [
    new URL('src/etcd/member-http.ts', root).href,
    new URL('../network/member-http.ts', import.meta.url).href,
  ],
  [
    new URL('src/mirror/http-origin.ts', root).href,
    new URL('../mirror/http-origin.ts', import.meta.url).href,
  ],
  [
    new URL('src/history/store/directory-store.ts', root).href,
    new URL('../history/directory-store.ts', import.meta.url).href,
  ],
  [
    new URL('src/history/engine/engine-process.ts', root).href,
    new URL('../history/engine-process.ts', import.meta.url).href,
  ],
])

let isInstalled = false
const patches = new Map<string, Patch[]>()

/** Changes production code; before it is loaded. */
export function plant(patch: Patch): void {
  const url = new URL(patch.file, root).href
  patches.set(url, [...(patches.get(url) ?? []), patch])
}

export function intercept(): void {
  if (isInstalled) return
  isInstalled = true
  registerHooks({
    resolve: (specifier, context, next) => {
      if (!isProduction(context.parentURL)) return next(specifier, context)
      const replacement = replaced.get(specifier) ?? replaced.get(`node:${specifier}`)
      if (replacement !== undefined) return { url: replacement, shortCircuit: true }
      const file = replacedFiles.get(new URL(specifier, context.parentURL).href)
      if (file !== undefined) return { url: file, shortCircuit: true }
      const name = specifier.replace(/^node:/, '')
      if (ioModules.has(name)) return { url: `simulation-io:${name}`, shortCircuit: true }
      return next(specifier, context)
    },
    load: (url, context, next) => {
      if (url.startsWith('simulation-io:')) return failingModule(url.slice('simulation-io:'.length))
      const planted = patches.get(url)
      if (planted === undefined) return next(url, context)
      const source = withPatches(readFileSync(fileURLToPath(url), 'utf8'), planted)
      return { format: 'module-typescript', source, shortCircuit: true }
    },
  })
  interceptGlobals()
  keepTrackOfSignals()
}

function isProduction(parent: string | undefined): boolean {
  return parent?.startsWith(new URL('src/', root).href) === true
}

/** The source of one file with its patches. Throws when one of them does not fit. */
export function withPatches(source: string, changes: readonly Patch[]): string {
  let changed = source
  for (const { file, find, replace } of changes) {
    const parts = changed.split(find)
    if (parts.length !== 2) {
      throw new Error(`${file} has ${parts.length - 1} places with the text to replace: ${find}`)
    }
    changed = parts.join(replace)
  }
  return changed
}

/** A module with the exports of the real one, whose functions fail unless they are simulated. */
function failingModule(name: string) {
  const real = process.getBuiltinModule(`node:${name}`) as Record<string, unknown>
  const names = Object.keys(real).filter((key) => key !== 'default' && /^\w+$/.test(key))
  const url = simulated.get(name)
  const lines = names.map((key) => {
    const isKept = harmless.has(key) || typeof real[key] !== 'function'
    const value = isKept ? `real.${key}` : `fails('${name}.${key}')`
    return `export const ${key} = ${url === undefined ? value : `simulated.${key} ?? ${value}`}`
  })
  const source = [
    ...(url === undefined ? [] : [`import * as simulated from '${url}'`]),
    `const real = process.getBuiltinModule('node:${name}')`,
    'const fails = (what) => function () {',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of another module.
    '  throw new Error(`simulated code calls ${what}, which does real I/O`)',
    '}',
    ...lines,
    `export default { ${names.join(', ')} }`,
  ].join('\n')
  return { format: 'module', source, shortCircuit: true }
}

/** The current process; fails when code of no process reaches for what belongs to a process. */
export function needProcess(what: string): SimulatedProcess {
  const process = currentProcess()
  if (process === undefined) throw new Error(`code outside of simulated processes uses ${what}`)
  return process
}

/**
 * Replaces a global function. While no world runs, for example while modules are loaded, the real
 * one is called.
 */
function replace<Name extends string>(
  target: Record<Name, (...args: never[]) => unknown>,
  name: Name,
  simulated: (process: SimulatedProcess, ...args: never[]) => unknown,
): void {
  const real = target[name]
  const value = (...args: never[]) => {
    const process = currentProcess()
    if (process !== undefined) return simulated(process, ...args)
    if (isWorldRunning()) throw new Error(`code outside of simulated processes uses ${name}`)
    return real.apply(target, args)
  }
  // `process.hrtime` has a function of its own; symbols, such as that of `promisify`, are left out.
  Object.assign(value, Object.fromEntries(Object.entries(real)))
  Object.defineProperty(target, name, { value, configurable: true, writable: true })
}

type Work = (...args: unknown[]) => void

function interceptGlobals(): void {
  const bound = (work: Work, args: unknown[]) => (args.length === 0 ? work : () => work(...args))
  const globals = globalThis as unknown as Record<string, (...args: never[]) => unknown>
  replace(globals, 'setTimeout', (process, work: Work, ms = 1, ...args: unknown[]) =>
    process.setTimeout(bound(work, args), ms),
  )
  replace(globals, 'setInterval', (process, work: Work, ms = 1, ...args: unknown[]) =>
    process.setInterval(bound(work, args), ms),
  )
  replace(globals, 'setImmediate', (process, work: Work, ...args: unknown[]) =>
    process.setImmediate(bound(work, args)),
  )
  for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) {
    replace(globals, name, (_, timer?: SimulatedTimer) => timer?.process.clear(timer))
  }
  replace(globals, 'fetch', fails('fetch'))
  replace(performance as never, 'now', (process) => process.monotonicMs())
  replace(Math as never, 'random', (process) => process.random.next())
  replace(AbortSignal as never, 'timeout', fails('AbortSignal.timeout'))
  replace(process.hrtime as never, 'bigint', fails('process.hrtime.bigint'))
  replace(process as never, 'hrtime', fails('process.hrtime'))
  for (const name of ['uptime', 'memoryUsage', 'cpuUsage', 'resourceUsage', 'getBuiltinModule']) {
    replace(process as never, name, fails(`process.${name}`))
  }
  replace(crypto as never, 'randomUUID', fails('crypto.randomUUID of the web'))
  replace(crypto as never, 'getRandomValues', fails('crypto.getRandomValues of the web'))
  replace(Date as never, 'now', (process) => process.wallMs())
  const RealDate = Date
  globalThis.Date = new Proxy(RealDate, {
    apply: (target) => new target(RealDate.now()).toString(),
    construct: (target, args: []) =>
      args.length === 0 ? new target(RealDate.now()) : new target(...args),
  })
  const { pid } = process
  Object.defineProperty(process, 'pid', { get: () => currentProcess()?.pid ?? pid })
}

/** Results of `AbortSignal.any`, which the runtime retains while they have listeners. */
let combinedSignals: WeakRef<AbortSignal>[] = []

function keepTrackOfSignals(): void {
  const real = AbortSignal.any.bind(AbortSignal)
  AbortSignal.any = (signals) => {
    const combined = real(signals)
    if (isWorldRunning()) combinedSignals.push(new WeakRef(combined))
    return combined
  }
}

/** Removes the listeners of killed processes; otherwise every world would stay in memory. */
export function releaseSignals(): void {
  for (const reference of combinedSignals) {
    const signal = reference.deref()
    if (signal === undefined) continue
    for (const listener of getEventListeners(signal, 'abort')) {
      signal.removeEventListener('abort', listener as () => void)
    }
  }
  combinedSignals = []
}

function fails(what: string): () => never {
  return () => {
    throw new Error(`simulated code uses ${what}, which is not simulated`)
  }
}
