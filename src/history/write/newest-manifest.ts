import { sequenceIn } from '../catalogue.ts'
import type { Pointer } from '../manifest.ts'
import { type ObjectStore, StoreError } from '../store/object-store.ts'

/**
 * Rejects when the store has manifests that are newer than the one that etcd points to: etcd was lost,
 * or restored from a backup, or is that of another installation. To go on would write a second archive
 * over the first, and delete the first as files that no manifest names. A manifest with the next number
 * is what a commit leaves that failed.
 */
export async function checkNewest(
  store: ObjectStore,
  pointer: Pick<Pointer, 'sequence'> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const known = pointer?.sequence ?? 0
  for await (const { name } of store.list('manifests/', { signal })) {
    const sequence = sequenceIn(name) ?? 0
    if (sequence <= known + 1) continue
    throw new StoreError(
      'denied',
      `the store has the manifest ${name}, which is newer than manifest ${known} in etcd: run tidings history recover, or use another directory or prefix`,
    )
  }
}
