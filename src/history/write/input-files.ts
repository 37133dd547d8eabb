import type { InputFile } from '../engine/protocol.ts'
import type { DayFiles, EventFile } from '../manifest.ts'
import type { FileCache, FileLease } from '../store/file-cache.ts'

/** Files that stay readable until this is disposed of. */
export class InputFiles implements Disposable {
  readonly files: InputFile[] = []
  readonly #leases: FileLease[] = []

  /** Rejects with a StoreError. */
  async add(
    cache: FileCache,
    { cluster, date }: Pick<DayFiles, 'cluster' | 'date'>,
    file: EventFile,
    signal: AbortSignal,
  ): Promise<void> {
    const events = await cache.open(file, { signal })
    this.#leases.push(events)
    const rollup = await cache.open(file.rollup, { signal })
    this.#leases.push(rollup)
    this.files.push({ cluster, date, path: events.path, rollupPath: rollup.path, file })
  }

  [Symbol.dispose](): void {
    for (const lease of this.#leases.splice(0)) lease[Symbol.dispose]()
  }
}
