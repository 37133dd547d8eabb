import { setTimeout as sleep } from 'node:timers/promises'
import type { EventWatch, WatchFrame, WireEvent } from './event-client.ts'

/** One change as a watcher is told of it. */
export interface Change {
  readonly type: WatchFrame['type']
  /** `namespace/name` */
  readonly key: string
  readonly version: number
}

/** How many of each fault are named; the rest is counted. */
const NAMED_MAX = 5

/**
 * Compares what a watcher saw with what it was owed: every change, once, in the order of their
 * versions. Says what is wrong in words; empty when nothing is.
 */
export function sequenceFaults(owed: readonly Change[], seen: readonly Change[]): string[] {
  const owedTexts = new Set(owed.map(changeText))
  const seenTexts = new Set<string>()
  const faults = {
    missing: [] as string[],
    doubled: [] as string[],
    'not owed': [] as string[],
    'out of order': [] as string[],
  }
  let last = -1
  for (const change of seen) {
    const text = changeText(change)
    if (seenTexts.has(text)) faults.doubled.push(text)
    else if (change.version <= last) faults['out of order'].push(`${text} after ${last}`)
    if (!owedTexts.has(text)) faults['not owed'].push(text)
    seenTexts.add(text)
    last = Math.max(last, change.version)
  }
  faults.missing.push(...[...owedTexts].filter((text) => !seenTexts.has(text)))
  return Object.entries(faults)
    .filter(([, found]) => found.length > 0)
    .map(([name, found]) => `${found.length} ${name}: ${found.slice(0, NAMED_MAX).join(', ')}`)
}

/** What a frame tells, apart from the object itself. */
export function changeOf({ type, object }: WatchFrame): Change {
  return { type, ...identityOf(object) }
}

/** What a watcher is owed for a create that was answered with this object. */
export function added(event: WireEvent): Change {
  return { type: 'ADDED', ...identityOf(event) }
}

/** The events there are once these changes are done, as name and version, sorted. */
export function replay(changes: readonly Change[]): string[] {
  const present = new Map<string, number>()
  for (const { type, key, version } of changes) {
    if (type === 'DELETED') present.delete(key)
    else if (type !== 'BOOKMARK') present.set(key, version)
  }
  return [...present].map(([key, version]) => `${key} ${version}`).sort()
}

/** The same of a list. */
export function statesOf(events: readonly WireEvent[]): string[] {
  return events
    .map((event) => identityOf(event))
    .map(({ key, version }) => `${key} ${version}`)
    .sort()
}

/** Reads a watch from its start, in the background, and keeps what came. */
export class WatchLog implements Disposable {
  readonly frames: WatchFrame[] = []
  /** Undefined when the server ended the watch in order, else what cut it. */
  readonly ended: Promise<unknown>
  readonly #watch: EventWatch

  constructor(watch: EventWatch) {
    this.#watch = watch
    this.ended = this.#read().then(
      () => undefined,
      (error: unknown) => error,
    )
  }

  get changes(): readonly Change[] {
    return this.frames.map(changeOf)
  }

  /** Waits for a frame; fails when it does not come in time. */
  async until(
    what: string,
    holds: (frames: readonly WatchFrame[]) => boolean,
    waitMsMax = 10_000,
  ): Promise<void> {
    const deadline = performance.now() + waitMsMax
    while (!holds(this.frames)) {
      if (performance.now() > deadline) {
        const last = JSON.stringify(this.frames.at(-1))?.slice(0, 300)
        throw new Error(
          `${what}: not within ${waitMsMax} ms, ${this.frames.length} frames, ${last}`,
        )
      }
      await sleep(2)
    }
  }

  /** Waits until a change of this version or a later one has come. */
  reach(version: number, waitMsMax?: number): Promise<void> {
    return this.until(
      `version ${version}`,
      (frames) => Number(frames.at(-1)?.object.metadata.resourceVersion ?? -1) >= version,
      waitMsMax,
    )
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]()
  }

  async #read(): Promise<void> {
    for await (const frame of this.#watch) this.frames.push(frame)
  }
}

function identityOf({ metadata }: WireEvent): Omit<Change, 'type'> {
  return {
    key: `${metadata.namespace}/${metadata.name}`,
    version: Number(metadata.resourceVersion),
  }
}

function changeText({ type, key, version }: Change): string {
  return `${type} ${key} ${version}`
}
