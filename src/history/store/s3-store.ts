/**
 * The archive in a bucket: an object has its name with the prefix of the archive before it. Every call has bounds
 * (`S3Timeouts`) and few attempts. A read that breaks off continues where it was, since objects never change.
 */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3'
import { pause } from '../../lib/abort.ts'
import { Backoff } from '../../lib/backoff.ts'
import { fileError } from './file-errors.ts'
import { collect, writeNewFile } from './object-bytes.ts'
import { checkNamePrefix, checkObjectName, isObjectName } from './object-name.ts'
import {
  type ListedObject,
  type LocalFile,
  type ObjectStore,
  StoreError,
  type StoreOptions,
} from './object-store.ts'
import { createS3Client, type Environment } from './s3-client.ts'
import { S3Deadline, type S3Timeouts } from './s3-deadline.ts'
import { S3Error, s3Error } from './s3-errors.ts'
import { abortedError, orAborted } from './store-abort.ts'

const ATTEMPTS = 4
const PAUSE_MS_MAX = 2_000
const UPLOAD_PIECE_BYTES = 256 * 1024
const TIMEOUTS: S3Timeouts = {
  connectMs: 5_000,
  // A store may check and copy a large object before it responds.
  idleMs: 30_000,
  callMs: 60_000,
  bytesPerSecondMin: 256 * 1024,
  pauseMs: 200,
}

export interface S3Location {
  readonly bucket: string
  /** Without a slash at its end; may be empty. */
  readonly prefix: string
}

export class S3Store implements ObjectStore {
  readonly #client: S3Client
  readonly #timeouts: S3Timeouts
  readonly #bucket: string
  /** With a slash at its end, unless it is empty. */
  readonly #prefix: string

  constructor(location: S3Location, env: Environment, timeouts: Partial<S3Timeouts> = {}) {
    this.#timeouts = { ...TIMEOUTS, ...timeouts }
    this.#client = createS3Client(env, this.#timeouts)
    this.#bucket = location.bucket
    this.#prefix = location.prefix === '' ? '' : `${location.prefix}/`
  }

  async put(name: string, content: Buffer | LocalFile, { signal }: StoreOptions): Promise<void> {
    checkObjectName(name)
    const what = `put ${this.#urlOf(name)}`
    const bytes = Buffer.isBuffer(content) ? content.length : content.bytes
    await this.#call(what, signal, bytes, async (abortSignal) => {
      await using body = await UploadBody.open(content)
      const command = new PutObjectCommand({
        Bucket: this.#bucket,
        Key: this.#prefix + name,
        Body: body.content,
        ContentLength: bytes,
      })
      await body.orFailed(this.#client.send(command, { abortSignal }))
    })
  }

  async get(name: string, options: StoreOptions & { readonly bytesMax: number }): Promise<Buffer> {
    return await collect(this.#urlOf(name), this.read(name, options), options.bytesMax)
  }

  read(name: string, { signal }: StoreOptions): AsyncIterable<Buffer> {
    checkObjectName(name)
    return this.#read(name, signal)
  }

  async download(name: string, path: string, options: StoreOptions): Promise<number> {
    return await writeNewFile(path, this.read(name, options))
  }

  list(prefix: string, { signal }: StoreOptions): AsyncIterable<ListedObject> {
    checkNamePrefix(prefix)
    return this.#list(prefix, signal)
  }

  async delete(name: string, { signal }: StoreOptions): Promise<void> {
    checkObjectName(name)
    const command = new DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + name })
    try {
      await this.#call(`delete ${this.#urlOf(name)}`, signal, 0, (abortSignal) =>
        this.#client.send(command, { abortSignal }),
      )
    } catch (error) {
      if (!(error instanceof StoreError && error.kind === 'missing')) throw error
    }
  }

  #urlOf(name: string): string {
    return `s3://${this.#bucket}/${this.#prefix}${name}`
  }

  /** One call with its deadline, repeated while its failures are transient. */
  async #call<T>(
    what: string,
    signal: AbortSignal,
    bytes: number,
    send: (abortSignal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const retries = new Retries(what, signal, this.#timeouts)
    for (;;) {
      using deadline = new S3Deadline(signal, this.#timeouts, bytes)
      try {
        // Sources of credentials do not know the signal.
        return await orAborted(what, deadline.signal, send(deadline.signal))
      } catch (error) {
        await retries.next(error, deadline)
      }
    }
  }

  async *#read(name: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    const what = `get ${this.#urlOf(name)}`
    const retries = new Retries(what, signal, this.#timeouts)
    using deadline = new S3Deadline(signal, this.#timeouts, 0)
    let at = 0
    let end: number | undefined
    while (at !== end) {
      try {
        const opened = await orAborted(what, deadline.signal, this.#open(name, at, deadline))
        end = opened.bytes
        deadline.allow(end)
        for await (const piece of opened.body) {
          at += piece.length
          yield piece
        }
        if (at !== end) throw new Error(`the connection ended after ${at} of ${end} bytes`)
      } catch (error) {
        if (at !== end) await retries.next(error, deadline)
      }
    }
  }

  /** The object from a byte on, and its whole size. */
  async #open(
    name: string,
    from: number,
    { signal }: S3Deadline,
  ): Promise<{ readonly body: Readable; readonly bytes: number }> {
    const { Body, ContentLength, ContentRange } = await this.#client.send(
      new GetObjectCommand({
        Bucket: this.#bucket,
        Key: this.#prefix + name,
        ...(from === 0 ? {} : { Range: `bytes=${from}-` }),
      }),
      { abortSignal: signal },
    )
    if (!(Body instanceof Readable)) throw new Error('the response has no content')
    const isWhole = from === 0 || ContentRange?.startsWith(`bytes ${from}-`) === true
    if (ContentLength !== undefined && isWhole) return { body: Body, bytes: from + ContentLength }
    Body.destroy()
    throw new Error('the response does not say which bytes it has: is this S3?')
  }

  async *#list(prefix: string, signal: AbortSignal): AsyncGenerator<ListedObject> {
    let token: string | undefined
    do {
      const page = await this.#listPage(prefix, token, signal)
      yield* this.#objectsOf(page)
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined
    } while (token !== undefined)
  }

  async #listPage(
    prefix: string,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<ListObjectsV2CommandOutput> {
    const command = new ListObjectsV2Command({
      Bucket: this.#bucket,
      Prefix: this.#prefix + prefix,
      ContinuationToken: token,
    })
    return await this.#call(`list ${this.#urlOf(prefix)}`, signal, 0, async (abortSignal) => {
      const page = await this.#client.send(command, { abortSignal })
      // A page of HTML is read as a list of nothing.
      if (page.IsTruncated === undefined) throw new Error('the response is no list: is this S3?')
      const hasNext =
        page.NextContinuationToken !== undefined && page.NextContinuationToken !== token
      if (page.IsTruncated && !hasNext) throw new Error('the list does not say how it continues')
      return page
    })
  }

  *#objectsOf({ Contents = [] }: ListObjectsV2CommandOutput): Generator<ListedObject> {
    for (const { Key = '', Size, LastModified } of Contents) {
      const name = Key.slice(this.#prefix.length)
      // Other programs may have put other objects there.
      if (!(Key.startsWith(this.#prefix) && isObjectName(name))) continue
      if (Size === undefined || LastModified === undefined) continue
      yield { name, bytes: Size, modifiedAtMs: LastModified.getTime() }
    }
  }
}

/** Counts the failures of a call, and pauses between its attempts. */
class Retries {
  readonly #what: string
  readonly #signal: AbortSignal
  readonly #backoff: Backoff
  #failures = 0

  constructor(what: string, signal: AbortSignal, { pauseMs }: S3Timeouts) {
    this.#what = what
    this.#signal = signal
    this.#backoff = new Backoff({ firstMs: pauseMs, mostMs: PAUSE_MS_MAX })
  }

  /** Resolves when the next attempt may begin, or throws the error that the caller gets. */
  async next(error: unknown, deadline: S3Deadline): Promise<void> {
    if (this.#signal.aborted) throw abortedError(this.#what, this.#signal)
    const failure = deadline.isPast ? this.#late(deadline) : this.#meaning(error)
    this.#failures++
    if (!(failure instanceof S3Error && failure.isTransient)) throw failure
    if (this.#failures === ATTEMPTS) throw failure
    await pause(this.#backoff.next(), this.#signal)
    if (this.#signal.aborted) throw abortedError(this.#what, this.#signal)
  }

  /** Not repeated: it would take as long again. */
  #late({ elapsedMs }: S3Deadline): StoreError {
    const seconds = Math.round(elapsedMs / 1000)
    const message = `${this.#what}: S3 is too slow: the call was ended after ${seconds} s`
    return new StoreError('unavailable', message)
  }

  #meaning(error: unknown): StoreError {
    return error instanceof StoreError ? error : s3Error(this.#what, error)
  }
}

/** The content of a put; of a file it is never in memory as a whole. */
class UploadBody implements AsyncDisposable {
  readonly content: Buffer | Readable
  readonly #failed: Promise<never>

  static async open(content: Buffer | LocalFile): Promise<UploadBody> {
    if (Buffer.isBuffer(content)) return new UploadBody(content, '')
    const { path, bytes } = content
    const { size } = await stat(path).catch((error) => {
      throw fileError('read', path, error)
    })
    if (size !== bytes) {
      throw new StoreError('unavailable', `${path} has not ${bytes} bytes but ${size}`)
    }
    return new UploadBody(createReadStream(path, { highWaterMark: UPLOAD_PIECE_BYTES }), path)
  }

  private constructor(content: Buffer | Readable, path: string) {
    this.content = content
    const { promise, reject } = Promise.withResolvers<never>()
    this.#failed = promise
    // The SDK does not look at errors of the stream: the request would wait for its rest.
    if (content instanceof Readable) {
      content.once('error', (error) => reject(fileError('read', path, error)))
    }
  }

  /** The result of the call, or the error of the file. */
  async orFailed<T>(call: Promise<T>): Promise<T> {
    return await Promise.race([call, this.#failed])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.content instanceof Readable) this.content.destroy()
  }
}
