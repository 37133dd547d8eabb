/**
 * `tidings history recover`: points etcd to the newest manifest in the store, for an etcd that was lost
 * or restored from a backup.
 */
import { createHash } from 'node:crypto'
import { beginning } from '../../storage/resource-version.ts'
import { type Catalogue, decodedObject, MANIFEST_BYTES_MAX, sequenceIn } from '../catalogue.ts'
import type { Manifest, StoredFile } from '../manifest.ts'
import { type ObjectStore, StoreError } from '../store/object-store.ts'

export interface RecoverOptions {
  readonly catalogue: Catalogue
  readonly store: ObjectStore
  readonly print: (line: string) => void
  readonly signal: AbortSignal
}

/** Returns whether etcd points to the newest complete manifest now. */
export async function recover(options: RecoverOptions): Promise<boolean> {
  const { catalogue, store, print, signal } = options
  const there = await catalogue.readPointer(signal)
  const known = there?.pointer.sequence ?? 0
  const sequences = new Map<number, string[]>()
  for await (const { name } of store.list('manifests/', { signal })) {
    const sequence = sequenceIn(name) ?? 0
    if (sequence > known) sequences.set(sequence, [...(sequences.get(sequence) ?? []), name])
  }
  for (const [, names] of [...sequences].sort(([one], [other]) => other - one)) {
    const found = await furthest(names, options)
    if (found === undefined) continue
    const { manifest, file } = found
    // Nothing after the position of etcd itself is known to be archived in this history of etcd.
    const { position = beginning } = there?.pointer ?? {}
    const { sequence, positionAtMs } = manifest
    const outcome = await catalogue.adopt(
      file,
      { sequence, position, positionAtMs },
      there?.modRevision ?? 0,
    )
    if (typeof outcome === 'string') {
      print('another program has moved the pointer in etcd meanwhile: nothing was changed')
      return false
    }
    const events = manifest.days.reduce((sum, { rows }) => sum + rows, 0)
    print(`etcd points to ${file.name}: ${manifest.days.length} days of clusters, ${events} rows`)
    return true
  }
  if (there === undefined) print('the store has no complete manifest')
  else print(`etcd already points to the newest manifest, ${there.pointer.manifest.name}`)
  return there !== undefined
}

/**
 * Of several manifests with one number, all but one were written by commits that lost. Each is complete
 * by itself, and the one with the highest position has the most.
 */
async function furthest(
  names: readonly string[],
  options: RecoverOptions,
): Promise<FoundManifest | undefined> {
  let best: FoundManifest | undefined
  for (const name of names) {
    const found = await completeManifest(name, options)
    if (found === undefined) continue
    if (best === undefined || found.manifest.position > best.manifest.position) best = found
  }
  return best
}

interface FoundManifest {
  readonly manifest: Manifest
  readonly file: StoredFile
}

/** Undefined if the manifest, or the list of one of its days, cannot be read. */
async function completeManifest(
  name: string,
  { catalogue, store, print, signal }: RecoverOptions,
): Promise<FoundManifest | undefined> {
  try {
    const bytes = await store.get(name, { signal, bytesMax: MANIFEST_BYTES_MAX })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const manifest = (await decodedObject(bytes, name)).content as Manifest
    for (const day of manifest.days) await catalogue.files(day, signal)
    return { manifest, file: { name, bytes: bytes.length, sha256 } }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    print(`${name} is not complete: ${error.message}`)
    return undefined
  }
}
