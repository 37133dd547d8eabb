/** Adds up a profile of V8 by the folder of the code that used the time or the memory. */
import type { HeapProfiler, Profiler } from 'node:inspector'

const LEFT_OUT: ReadonlySet<string> = new Set(['(idle)', 'node:inspector'])

/** Microseconds of the main thread, by folder, without idle time and the start of the profile. */
export function cpuByFolder({
  nodes,
  samples = [],
  timeDeltas = [],
}: Profiler.Profile): Map<string, number> {
  const folders = new Map(nodes.map(({ id, callFrame }) => [id, folderOf(callFrame)]))
  const sums = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const folder = folders.get(id) ?? ''
    if (!LEFT_OUT.has(folder)) add(sums, folder, timeDeltas[index] ?? 0)
  }
  return sums
}

/** Bytes that were allocated, by folder. */
export function bytesByFolder({ head }: HeapProfiler.SamplingHeapProfile): Map<string, number> {
  const sums = new Map<string, number>()
  const pending = [head]
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    add(sums, folderOf(node.callFrame), node.selfSize)
    pending.push(...node.children)
  }
  return sums
}

function add(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value)
}

/** `cache`, `storage/etcd`, `jose`, `node:http2`, `(garbage collector)`, `(native)`. */
function folderOf({
  url,
  functionName,
}: {
  readonly url: string
  readonly functionName: string
}): string {
  const ours = /\/dist\/(?:(.*)\/)?[^/]+$/.exec(url)
  if (ours !== null && !url.includes('/node_modules/')) return ours[1] ?? 'main'
  const installed = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)
  if (installed !== null) return installed[1] ?? ''
  const builtIn = /^node:(?:internal\/)?([\w]+)/.exec(url)
  if (builtIn !== null) return `node:${builtIn[1]}`
  return functionName.startsWith('(') ? functionName : '(native)'
}
