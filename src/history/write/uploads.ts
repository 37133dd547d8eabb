/** Copies the files of a segment to the store, and deletes them here. */
import { rm } from 'node:fs/promises'
import type { WrittenFile } from '../engine/protocol.ts'
import type { ObjectStore } from '../store/object-store.ts'
import { putVerified } from '../store/verified-put.ts'

export class Uploads {
  readonly #store: ObjectStore

  constructor(store: ObjectStore) {
    this.#store = store
  }

  /** Can be repeated after a failure. Rejects with a StoreError. */
  async all(files: readonly WrittenFile[], signal: AbortSignal): Promise<void> {
    for (const { file, path, rollupPath } of files) {
      await putVerified(this.#store, file, { path, bytes: file.bytes }, { signal })
      const { rollup } = file
      await putVerified(this.#store, rollup, { path: rollupPath, bytes: rollup.bytes }, { signal })
    }
    await this.discard(files)
  }

  /** Deletes the files here. */
  async discard(files: readonly WrittenFile[]): Promise<void> {
    const paths = files.flatMap(({ path, rollupPath }) => [path, rollupPath])
    await Promise.all(paths.map((path) => rm(path, { force: true })))
  }
}
