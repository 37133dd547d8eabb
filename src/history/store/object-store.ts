/**
 * Where the files of the archive are: a directory or a bucket. Nothing more is needed than these
 * operations: no conditional writes, no renames, no locks. Names have slashes and are never reused,
 * so a put that is repeated writes the same bytes.
 *
 * All operations fail with a `StoreError` only, also when the signal aborts: its kind is `unavailable`
 * then.
 */
export interface ObjectStore {
  /** Writes the whole object, or fails. A failed put may leave the object, or a part of it. */
  put(name: string, content: Buffer | LocalFile, options: StoreOptions): Promise<void>
  /** An object that does not exist fails with the kind `missing`, one that is longer as `unavailable`. */
  get(name: string, options: StoreOptions & { readonly bytesMax: number }): Promise<Buffer>
  /** The object piece by piece, all of it or an error. */
  read(name: string, options: StoreOptions): AsyncIterable<Buffer>
  /** Writes the object to a new file, and returns its size. A failure leaves no file. */
  download(name: string, path: string, options: StoreOptions): Promise<number>
  /** Objects whose names begin with the prefix, in no order. */
  list(prefix: string, options: StoreOptions): AsyncIterable<ListedObject>
  /** An object that does not exist is deleted already. */
  delete(name: string, options: StoreOptions): Promise<void>
  /** The path of the object, if it is a local file that can be read in place. */
  localPath?(name: string): string
  /** The folder of these paths. */
  readonly localFolder?: string | undefined
}

export interface StoreOptions {
  readonly signal: AbortSignal
}

export interface LocalFile {
  readonly path: string
  readonly bytes: number
}

export interface ListedObject {
  readonly name: string
  readonly bytes: number
  readonly modifiedAtMs: number
}

export type StoreErrorKind = 'missing' | 'denied' | 'full' | 'unavailable'

export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly kind: StoreErrorKind

  constructor(kind: StoreErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}
