import { hash } from 'node:crypto'
import type { Version } from './resource-version.ts'
import type { StoredEvent } from './storage.ts'
import { StoredBody } from './stored-form.ts'

/** Where the version is inserted. */
const versionOffset = '{"metadata":{'.length

/**
 * A namespace in the form of stored events, so that everything that reads, selects, watches and
 * encodes events does the same for namespaces. The key of a namespace names it twice.
 */
export function namespaceObject(namespace: {
  readonly cluster: string
  readonly name: string
  readonly version: Version
  readonly firstWrittenMs: number
}): StoredEvent {
  const { cluster, name, version, firstWrittenMs } = namespace
  const metadata = {
    name,
    uid: uidOf(`${cluster}/${name}`),
    creationTimestamp: `${new Date(firstWrittenMs).toISOString().slice(0, 19)}Z`,
    labels: { 'kubernetes.io/metadata.name': name },
  }
  return new StoredBody({
    key: { cluster, namespace: name, name },
    body: Buffer.from(JSON.stringify({ metadata, spec: {}, status: { phase: 'Active' } })),
    versionOffset,
    version,
    writtenAtMs: firstWrittenMs,
  })
}

/** A version 8 UUID made from a hash, which is the same on all replicas. */
export function uidOf(path: string): string {
  const digits = hash('sha256', path, 'hex')
  const variant = (Number.parseInt(digits.charAt(16), 16) & 3) | 8
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `${variant.toString(16)}${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join('-')
}
