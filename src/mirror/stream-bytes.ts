/**
 * How much memory each stream of a replica may use for a page of a list and for writes in progress. A
 * mirror that has to wait retains both while it waits. All streams get the same, so that no cluster
 * can take the share of another.
 */
import type { ClusterConfig } from '../clusters/clusters-file.ts'

const MIB = 1024 * 1024
const most = { page: 16 * MIB, window: 4 * MIB }
/** With less, a page of ordinary events would have to be requested again in smaller pages. */
const least = { page: MIB / 4, window: MIB / 16 }

export interface StreamBytes {
  /** Bytes of a page on the wire. */
  readonly page: number
  /** Bytes of writes in progress. */
  readonly window: number
}

export class SharedStreamBytes implements StreamBytes {
  readonly #totalBytes: number
  readonly #source: { readonly clusters: ReadonlyMap<string, Pick<ClusterConfig, 'mirror'>> }
  /** The clusters that `#each` was computed for; a reload replaces them. */
  #counted: ReadonlyMap<string, unknown> | undefined
  #each: StreamBytes = most

  /** The total is exceeded when there are so many streams that each gets the minimum. */
  constructor(
    totalBytes: number,
    source: { readonly clusters: ReadonlyMap<string, Pick<ClusterConfig, 'mirror'>> },
  ) {
    this.#totalBytes = totalBytes
    this.#source = source
  }

  get page(): number {
    return this.#current().page
  }

  get window(): number {
    return this.#current().window
  }

  #current(): StreamBytes {
    const { clusters } = this.#source
    if (clusters === this.#counted) return this.#each
    this.#counted = clusters
    let streams = 0
    for (const { mirror } of clusters.values()) {
      if (mirror === undefined) continue
      // Owners are listed one page at a time.
      streams += (mirror.namespaces?.length ?? 1) + (mirror.owners === true ? 1 : 0)
    }
    const scale = this.#totalBytes / (Math.max(1, streams) * (most.page + most.window))
    const sized = (what: keyof StreamBytes): number =>
      Math.min(most[what], Math.max(least[what], Math.floor(most[what] * scale)))
    this.#each = { page: sized('page'), window: sized('window') }
    return this.#each
  }
}
