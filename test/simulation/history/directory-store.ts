/** Replaces src/history/store/directory-store.ts in the simulation: requests go to the simulated store. */

import {
  type ListedObject,
  type LocalFile,
  type ObjectStore,
  StoreError,
  type StoreOptions,
} from '../../../src/history/store/object-store.ts'
import { AbortListener } from '../../../src/lib/abort.ts'
import { currentProcess } from '../kernel/current.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import { archiveHostOf } from './archive-host.ts'
import type { Answer, Bucket, Lie } from './bucket.ts'

/** As the client for S3 has it. */
const timeoutMs = 30_000
/** Names in one answer. */
const pageNames = 40

export class DirectoryStore implements ObjectStore {
  readonly localFolder: string
  readonly #process: SimulatedProcess
  readonly #bucket: Bucket
  readonly #replica: number

  constructor(root: string) {
    const process = currentProcess()
    const { bucket, replica } = archiveHostOf(process)
    this.localFolder = root
    this.#process = process as SimulatedProcess
    this.#bucket = bucket
    this.#replica = replica
  }

  async put(name: string, content: Buffer | LocalFile, { signal }: StoreOptions): Promise<void> {
    const bytes = Buffer.isBuffer(content) ? Buffer.from(content) : this.#localBytes(content)
    const bucket = this.#bucket
    await this.#request(`put ${name}`, signal, {
      isPut: true,
      apply: (lie) => {
        // A whole object is replaced by a whole one: files are renamed, and buckets do the same.
        const stored = storedBytes(bytes, bucket.get(name) === undefined ? lie : undefined)
        if (stored !== undefined) bucket.put(name, stored)
        return { result: undefined }
      },
      applyPart: () => {
        if (bucket.get(name) === undefined) bucket.put(name, bytes.subarray(0, bytes.length >> 1))
      },
    })
  }

  async get(name: string, options: StoreOptions & { readonly bytesMax: number }): Promise<Buffer> {
    const bytes = await this.#read(name, options)
    if (bytes.length <= options.bytesMax) return bytes
    throw new StoreError('unavailable', `${name} is longer than ${options.bytesMax} bytes`)
  }

  async *read(name: string, options: StoreOptions): AsyncGenerator<Buffer> {
    yield await this.#read(name, options)
  }

  async download(): Promise<number> {
    throw new Error('files of this store are read in place')
  }

  async *list(prefix: string, { signal }: StoreOptions): AsyncGenerator<ListedObject> {
    const bucket = this.#bucket
    for (let after = ''; ; ) {
      const page = await this.#request(`list ${prefix}`, signal, {
        isPut: false,
        apply: () => {
          const names = bucket.names(prefix).filter((name) => name > after)
          return { result: names.slice(0, pageNames).map((name) => listed(bucket, name)) }
        },
      })
      yield* page
      const last = page.at(-1)
      if (last === undefined) return
      after = last.name
    }
  }

  async delete(name: string, { signal }: StoreOptions): Promise<void> {
    await this.#request(`delete ${name}`, signal, {
      isPut: false,
      apply: () => {
        this.#bucket.delete(name)
        return { result: undefined }
      },
    })
  }

  localPath(name: string): string {
    return `${this.localFolder}/${name}`
  }

  #localBytes({ path, bytes }: LocalFile): Buffer {
    const found = this.#process.files.get(path)
    if (found?.length === bytes) return found
    throw new StoreError('unavailable', `${path} has not ${bytes} bytes but ${found?.length}`)
  }

  #read(name: string, { signal }: StoreOptions): Promise<Buffer> {
    return this.#request(`read ${name}`, signal, {
      isPut: false,
      apply: () => {
        const found = this.#bucket.get(name)
        return found === undefined
          ? { failure: 'missing', message: `there is no ${name}` }
          : { result: found.bytes }
      },
    })
  }

  async #request<Result>(
    what: string,
    signal: AbortSignal,
    request: {
      readonly isPut: boolean
      readonly apply: (lie: Lie | undefined) => Answer<Result>
      readonly applyPart?: () => void
    },
  ): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const fail = (why: string) => () => reject(new StoreError('unavailable', `${what}: ${why}`))
    if (signal.aborted) fail('aborted')()
    using _listener = new AbortListener(signal, fail('aborted'))
    const timer = setTimeout(fail('no answer'), timeoutMs)
    if (!signal.aborted) {
      this.#bucket.send({
        replica: this.#replica,
        ...request,
        answer: (answer) =>
          this.#process.after(0, () => {
            if ('result' in answer) resolve(answer.result)
            else reject(new StoreError(answer.failure, `${what}: ${answer.message}`))
          }),
      })
    }
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }
}

function storedBytes(bytes: Buffer, lie: Lie | undefined): Buffer | undefined {
  switch (lie) {
    case undefined:
      return bytes
    case 'loses':
      return undefined
    case 'truncates':
      return bytes.subarray(0, bytes.length - 1)
    case 'garbles': {
      const garbled = Buffer.from(bytes)
      garbled[garbled.length >> 1] = (garbled[garbled.length >> 1] ?? 0) ^ 1
      return garbled
    }
  }
}

function listed(bucket: Bucket, name: string): ListedObject {
  const { bytes = Buffer.alloc(0), modifiedAtMs = 0 } = bucket.get(name) ?? {}
  return { name, bytes: bytes.length, modifiedAtMs }
}
