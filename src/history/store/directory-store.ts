/**
 * The archive in a directory: an object is a file of the same name. A file appears under its name only
 * when all of it is on the disk. Until then it is in a folder for unfinished files, whose name no object
 * can have. Several replicas may share the directory.
 */
import { randomUUID } from 'node:crypto'
import { constants, type Dirent } from 'node:fs'
import { mkdir, open, opendir, readdir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { codeOf, fileError, objectFileError } from './file-errors.ts'
import { collect, piecesOf, writeNewFile } from './object-bytes.ts'
import { checkNamePrefix, checkObjectName, isObjectName } from './object-name.ts'
import {
  type ListedObject,
  type LocalFile,
  type ObjectStore,
  StoreError,
  type StoreOptions,
} from './object-store.ts'
import { orAborted, untilAborted } from './store-abort.ts'

const UNFINISHED = '.unfinished'
/** Longer than any put: an older file was left by a process that ended. */
const LEFT_MS = 24 * 60 * 60 * 1000
const RENAME_ATTEMPTS = 10
/** Entries of a folder that are read at a time. */
const ENTRIES = 256
/** File systems that cannot sync a folder, such as some in user space, say so with one of these. */
const CANNOT_SYNC: ReadonlySet<string> = new Set(['EINVAL', 'ENOSYS', 'ENOTSUP', 'EBADF'])

export class DirectoryStore implements ObjectStore {
  readonly #root: string
  #preparing: Promise<void> | undefined

  constructor(root: string) {
    this.#root = root
  }

  get localFolder(): string {
    return this.#root
  }

  async put(name: string, content: Buffer | LocalFile, { signal }: StoreOptions): Promise<void> {
    const path = this.localPath(name)
    const what = `put ${path}`
    const pieces = untilAborted(what, signal, contentPieces(content))
    await orAborted(what, signal, this.#put(path, pieces))
  }

  async get(name: string, options: StoreOptions & { readonly bytesMax: number }): Promise<Buffer> {
    return await collect(this.localPath(name), this.read(name, options), options.bytesMax)
  }

  read(name: string, { signal }: StoreOptions): AsyncIterable<Buffer> {
    const path = this.localPath(name)
    return untilAborted(`read ${path}`, signal, objectPieces(path))
  }

  async download(name: string, path: string, options: StoreOptions): Promise<number> {
    return await writeNewFile(path, this.read(name, options))
  }

  list(prefix: string, { signal }: StoreOptions): AsyncIterable<ListedObject> {
    checkNamePrefix(prefix)
    return untilAborted(`list ${this.#root}`, signal, this.#list(prefix))
  }

  async delete(name: string, { signal }: StoreOptions): Promise<void> {
    const path = this.localPath(name)
    await orAborted(`delete ${path}`, signal, this.#delete(path))
  }

  localPath(name: string): string {
    checkObjectName(name)
    return join(this.#root, name)
  }

  async #put(path: string, pieces: AsyncIterable<Buffer>): Promise<void> {
    await this.#prepare()
    const unfinished = join(this.#root, UNFINISHED, randomUUID())
    await writeNewFile(unfinished, pieces, { isDurable: true })
    try {
      await renameInto(unfinished, path)
      await this.#syncFolders(dirname(path))
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {})
      throw fileError('write', path, error)
    }
  }

  /** Runs once, unless it fails. */
  async #prepare(): Promise<void> {
    this.#preparing ??= prepareRoot(this.#root)
    try {
      await this.#preparing
    } catch (error) {
      this.#preparing = undefined
      throw fileError('write to', this.#root, error)
    }
  }

  /** All up to the root, since any of them may be new. */
  async #syncFolders(deepest: string): Promise<void> {
    for (let folder = deepest; ; folder = dirname(folder)) {
      await syncFolder(folder)
      if (relative(this.#root, folder) === '') return
    }
  }

  async *#list(prefix: string): AsyncGenerator<ListedObject> {
    const folder = prefix.slice(0, Math.max(0, prefix.lastIndexOf('/')))
    for await (const name of this.#names(folder, prefix)) {
      const listed = await this.#listed(name)
      if (listed !== undefined) yield listed
    }
  }

  /** The files below a folder. */
  async *#names(folder: string, prefix: string): AsyncGenerator<string> {
    for await (const entry of entriesOf(join(this.#root, folder))) {
      const name = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (!isObjectName(name)) continue
      if (entry.isFile() && name.startsWith(prefix)) yield name
      if (entry.isDirectory() && mayContain(name, prefix)) yield* this.#names(name, prefix)
    }
  }

  /** Undefined if it was deleted meanwhile. */
  async #listed(name: string): Promise<ListedObject | undefined> {
    const path = join(this.#root, name)
    try {
      const { size, mtimeMs } = await stat(path)
      return { name, bytes: size, modifiedAtMs: mtimeMs }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      throw fileError('list', path, error)
    }
  }

  async #delete(path: string): Promise<void> {
    try {
      await unlink(path)
    } catch (error) {
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return
      throw fileError('delete', path, error)
    }
    await this.#deleteEmptyFolders(dirname(path))
  }

  async #deleteEmptyFolders(deepest: string): Promise<void> {
    for (let folder = deepest; relative(this.#root, folder) !== ''; folder = dirname(folder)) {
      try {
        await rmdir(folder)
      } catch {
        // It has other files, or another replica was first. The object is deleted in any case.
        return
      }
    }
  }
}

/** Whether names in the folder can begin with the prefix. */
function mayContain(folder: string, prefix: string): boolean {
  return `${folder}/`.startsWith(prefix) || prefix.startsWith(`${folder}/`)
}

/** Creates the root, and deletes what earlier processes left unfinished. */
async function prepareRoot(root: string): Promise<void> {
  const unfinished = join(root, UNFINISHED)
  const created = await mkdir(unfinished, { recursive: true }).catch(async (error) => {
    // Node says this of a read-only file system as well; a plain mkdir says the reason.
    if (codeOf(error) === 'ENOENT') await mkdir(root)
    throw error
  })
  if (created !== undefined) await syncFolder(dirname(created))
  for (const name of await readdir(unfinished)) {
    const path = join(unfinished, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < Date.now() - LEFT_MS) await rm(path, { force: true })
  }
}

async function renameInto(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await mkdir(dirname(to), { recursive: true })
      await rename(from, to)
      return
    } catch (error) {
      // Another replica deleted the last file of the folder, and with it the folder.
      if (codeOf(error) !== 'ENOENT' || attempt === RENAME_ATTEMPTS) throw error
    }
  }
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  await folder.sync().catch((error) => {
    if (!CANNOT_SYNC.has(codeOf(error))) throw error
  })
}

/** Nothing if there is no such folder. */
async function* entriesOf(path: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(path, { bufferSize: ENTRIES })
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error))) throw fileError('list', path, error)
  }
}

async function* objectPieces(path: string): AsyncGenerator<Buffer> {
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!(await file.stat()).isFile()) throw new StoreError('unavailable', `${path} is not a file`)
    yield* piecesOf(file)
  } catch (error) {
    throw objectFileError(path, error)
  }
}

async function* contentPieces(content: Buffer | LocalFile): AsyncGenerator<Buffer> {
  if (Buffer.isBuffer(content)) yield content
  else yield* localPieces(content)
}

/** Fails if the file does not have exactly the bytes that it should have. */
async function* localPieces({ path, bytes }: LocalFile): AsyncGenerator<Buffer> {
  let found = 0
  try {
    await using file = await open(path)
    for await (const piece of piecesOf(file)) {
      found += piece.length
      if (found > bytes) break
      yield piece
    }
  } catch (error) {
    throw fileError('read', path, error)
  }
  if (found !== bytes) {
    throw new StoreError(
      'unavailable',
      `${path} has not ${bytes} bytes but ${found > bytes ? 'more' : found}`,
    )
  }
}
