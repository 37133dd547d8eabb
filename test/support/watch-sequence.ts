import { setTimeout as sleep } from 'node:timers/promises'
import type { EventWatch } from './event-client.ts'
import type { WatchFrame, WireEvent } from './wire-event.ts'

/** One change as a watcher receives it. */
export interface Change {
  readonly type: WatchFrame['type']
  /** `namespace/name` */
  readonly key: string
  readonly version: number
}

/** How many of each fault are listed; the rest is counted. */
const NAMED_MAX = 5

/**
 * Compares what a watcher received with what it must get: every change, once, in the order of
 * versions. Returns descriptions of the faults.
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

/** The change of a frame, without the object itself. */
export function changeOf({ type, object }: WatchFrame): Change {
  return { type, ...identityOf(object) }
}

/** The change that a watcher must get for a create with this response. */
export function added(event: WireEvent): Change {
  return { type: 'ADDED', ...identityOf(event) }
}

/** The events that exist after these changes, as name and version, sorted. */
export function replay(changes: readonly Change[]): string[] {
  const present = new Map<string, number>()
  for (const { type, key, version } of changes) {
    if (type === 'DELETED') present.delete(key)
    else if (type !== 'BOOKMARK') present.set(key, version)
  }
  return [...present].map(([key, version]) => `${key} ${version}`).sort()
}

/** The same for a list. */
export function statesOf(events: readonly WireEvent[]): string[] {
  return events
    .map((event) => identityOf(event))
    .map(({ key, version }) => `${key} ${version}`)
    .sort()
}

/** Reads a watch from its start, in the background, and keeps the frames. */
export class WatchLog implements Disposable {
  readonly frames: WatchFrame[] = []
  /** Undefined when the server ended the watch normally, else the error. */
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

  /** Waits until the frames satisfy a condition; fails when they do not in time. */
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

  /** Waits until a change of this version or a later one is received. */
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
