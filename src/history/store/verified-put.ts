import { hash } from 'node:crypto'
import type { StoredFile } from '../manifest.ts'
import { digestOf } from './object-bytes.ts'
import { type LocalFile, type ObjectStore, StoreError, type StoreOptions } from './object-store.ts'

/**
 * Puts a file and reads it back, since a store can report a success without having stored what was sent. Resolves
 * only when the store has exactly the described bytes.
 */
export async function putVerified(
  store: ObjectStore,
  file: StoredFile,
  content: Buffer | LocalFile,
  options: StoreOptions,
): Promise<void> {
  await store.put(file.name, content, options)
  const { bytes, sha256 } = await readBack(store, file.name, options)
  if (bytes !== file.bytes) {
    throw unverified(file, `has ${bytes} bytes, not ${file.bytes}`)
  }
  if (sha256 !== file.sha256) {
    throw unverified(file, `does not have the SHA-256 ${file.sha256}`)
  }
}

/** What a manifest says of a file with this content. */
export function describeContent(name: string, content: Buffer): StoredFile {
  return { name, bytes: content.length, sha256: hash('sha256', content) }
}

async function readBack(store: ObjectStore, name: string, options: StoreOptions) {
  try {
    return await digestOf(store.read(name, options))
  } catch (error) {
    if (!(error instanceof StoreError && error.kind === 'missing')) throw error
    const message = `${name} is not in the store after a put that succeeded`
    throw new StoreError('unavailable', message, error)
  }
}

function unverified({ name }: StoredFile, finding: string): StoreError {
  return new StoreError('unavailable', `${name} was put, but in the store it ${finding}`)
}
