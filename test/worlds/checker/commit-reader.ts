/** Turns the commits of etcd into records of changes of events. */
import type { Change, Commit } from './commit.ts'
import type { ChangeRecord } from './lineage.ts'
import { openText, versionOf } from './stored-text.ts'

/** What is wrong with a commit itself, by itself. */
export interface CommitProblem {
  readonly guarantee: string
  readonly what: string
}

const changeIndexMax = 998

/** All clients of the simulation use one cluster: paths are without it. */
export const eventsFolder = '/events/local/'

/**
 * Numbers the changes of a commit as the promise about versions says: a put has the index in its
 * value, a delete the one after the change before it.
 */
export class CommitReader {
  readonly #onProblem: (problem: CommitProblem) => void
  /** The text before paths, once known. */
  #root: string | undefined

  constructor(onProblem: (problem: CommitProblem) => void) {
    this.#onProblem = onProblem
  }

  /** The path of an event; undefined for other keys. */
  pathOf(key: Buffer): string | undefined {
    const text = key.toString('latin1')
    this.#root ??= rootOf(text)
    if (this.#root === undefined || !text.startsWith(this.#root)) return undefined
    const path = text.slice(this.#root.length)
    return path === '' ? undefined : path
  }

  /** The records of a commit, without their states before. */
  records(commit: Commit): readonly ChangeRecord[] {
    const records: ChangeRecord[] = []
    let last = -1
    for (const change of commit.changes) {
      const path = this.pathOf(change.key)
      if (path === undefined) continue
      const record = this.#record(commit, change, { path, last })
      if (record === undefined) continue
      last = record.version - versionOf(commit.revision, 0)
      records.push(record)
    }
    return records
  }

  #record(
    commit: Commit,
    change: Change,
    place: { readonly path: string; readonly last: number },
  ): ChangeRecord | undefined {
    const { revision, at } = commit
    const { path, last } = place
    const namespace = path.slice(0, path.indexOf('/'))
    if (change.type === 'delete') {
      return {
        path,
        namespace,
        version: versionOf(revision, last + 1),
        revision,
        at,
        isDelete: true,
        body: noBody,
        writtenAtMs: 0,
        operation: 0,
        facet: 0,
        before: undefined,
      }
    }
    const text = openText(change.value)
    if (text === undefined) {
      this.#onProblem({
        guarantee: 'stored form',
        what: `revision ${revision} puts a value without a header at ${path}`,
      })
      return undefined
    }
    const { index, bodyStart, writtenAtMs, operation, facet } = text
    if (!(index > last && index <= changeIndexMax)) {
      this.#onProblem({
        guarantee: 'unique versions',
        what: `revision ${revision} has index ${index} at ${path} after index ${last}: two changes get the same version, or their order is wrong`,
      })
    }
    return {
      path,
      namespace,
      version: versionOf(revision, index),
      revision,
      at,
      isDelete: false,
      body: change.value.subarray(bodyStart),
      writtenAtMs,
      operation,
      facet,
      before: undefined,
    }
  }
}

const noBody = Buffer.alloc(0)

function rootOf(text: string): string | undefined {
  const at = text.indexOf(eventsFolder)
  return at < 0 ? undefined : text.slice(0, at + eventsFolder.length)
}
