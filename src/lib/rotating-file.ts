import { constants } from 'node:fs'
import { access, type FileHandle, mkdir, open, realpath, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { backupName, tidyBackups } from './file-backups.ts'
import { AppendError, type LineTarget } from './line-queue.ts'

/** Others may read what is in it only if somebody says so. */
const MODE = 0o600
const FOLDER_MODE = 0o700
const NEWLINE = Buffer.from('\n')
/** How often to look whether somebody has moved the file away. */
const LOOK_INTERVAL_MS = 1000
const ROTATION_RETRY_MS = 10_000

export interface RotatingFileOptions {
  readonly path: string
  /** A new file is begun before a write would make one longer than this. */
  readonly bytesMax: number
  /** Old files beyond this number, or this age, are removed; 0 keeps them all. */
  readonly backupsMax: number
  readonly backupAgeMsMax: number
  readonly compress: boolean
  /** A full file could not be renamed, or old ones not be removed or compressed. Tried again later. */
  readonly onRotationFailed: (error: unknown) => void
}

/**
 * A file that lines are added to. When it is full it is renamed to `name-<time>.ext` beside it and a
 * new one begun, between two lines. A file that was moved away by somebody else is begun anew within a
 * second. What is not a file, such as a terminal or `/dev/stdout`, is only written to.
 */
export class RotatingFile implements LineTarget {
  readonly #options: RotatingFileOptions
  /** Links in the path are followed once, so that it is the file that is renamed and not the link. */
  readonly #path: string
  #open: OpenFile | undefined
  #lookedAt = 0
  #rotatesAgainAt = 0
  /** Part of a line is out: the rest of it belongs into the same file. */
  #isInLine = false
  #tidying: Promise<void> | undefined

  /** Rejects if the file cannot be written to. */
  static async open(options: RotatingFileOptions): Promise<RotatingFile> {
    await mkdir(dirname(options.path), { recursive: true, mode: FOLDER_MODE })
    const path = await realpath(options.path).catch(() => options.path)
    const file = new RotatingFile(options, path)
    file.#open = await openFile(path)
    if (file.#open.isRegular) file.#tidy()
    return file
  }

  private constructor(options: RotatingFileOptions, path: string) {
    this.#options = options
    this.#path = path
  }

  async append(bytes: Buffer): Promise<void> {
    let written = 0
    try {
      const file = await this.#fileFor(bytes)
      while (written < bytes.length) {
        const { bytesWritten } = await file.handle.write(bytes, written)
        written += bytesWritten
        file.size += bytesWritten
      }
    } catch (error) {
      // It may be the file itself that has gone bad: the next try opens it anew.
      await this.#forget()
      throw new AppendError(written, error)
    } finally {
      if (written > 0) this.#isInLine = bytes[written - 1] !== NEWLINE[0]
    }
  }

  async close(): Promise<void> {
    await this.#tidying
    await this.#forget()
  }

  async #fileFor(bytes: Buffer): Promise<OpenFile> {
    let file = this.#open
    if (file !== undefined && (await this.#isMoved(file))) {
      await this.#forget()
      file = undefined
    }
    file ??= await openFile(this.#path, this.#isInLine)
    this.#open = file
    const isFull = file.size > 0 && file.size + bytes.length > this.#options.bytesMax
    if (!isFull || !file.isRegular || this.#isInLine) return file
    return this.#rotate(file)
  }

  async #isMoved(file: OpenFile): Promise<boolean> {
    const now = performance.now()
    if (!file.isRegular || this.#isInLine || now - this.#lookedAt < LOOK_INTERVAL_MS) return false
    this.#lookedAt = now
    try {
      const found = await stat(this.#path)
      return found.ino !== file.inode || found.dev !== file.device
    } catch {
      return true
    }
  }

  /** A file that cannot be renamed is written on: a line too many is better than none. */
  async #rotate(full: OpenFile): Promise<OpenFile> {
    if (performance.now() < this.#rotatesAgainAt) return full
    try {
      await moveAside(this.#path)
    } catch (error) {
      this.#rotatesAgainAt = performance.now() + ROTATION_RETRY_MS
      this.#options.onRotationFailed(error)
      return full
    }
    await this.#forget()
    this.#open = await openFile(this.#path)
    this.#tidy()
    return this.#open
  }

  /** One at a time, while lines go on. */
  #tidy(): void {
    this.#tidying ??= tidyBackups(this.#path, this.#options)
      .catch(this.#options.onRotationFailed)
      .finally(() => {
        this.#tidying = undefined
      })
  }

  async #forget(): Promise<void> {
    const file = this.#open
    this.#open = undefined
    // It was written to all the same, or has failed already.
    await file?.handle.close().catch(() => {})
  }
}

interface OpenFile {
  readonly handle: FileHandle
  readonly isRegular: boolean
  readonly inode: number
  readonly device: number
  size: number
}

/** `isInLine`: what comes next goes on with a line that this very file ends with. */
async function openFile(path: string, isInLine = false): Promise<OpenFile> {
  const handle = await open(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, MODE)
  try {
    const found = await handle.stat()
    const isRegular = found.isFile()
    const size = isRegular ? found.size : 0
    const file = { handle, isRegular, inode: found.ino, device: found.dev, size }
    if (!isInLine && size > 0) await endLastLine(file)
    return file
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Of a process that was killed, the last line may be half a line: it must not take the next along. */
async function endLastLine(file: OpenFile): Promise<void> {
  const last = Buffer.alloc(1)
  await file.handle.read(last, 0, 1, file.size - 1)
  if (last[0] === NEWLINE[0]) return
  await file.handle.write(NEWLINE)
  file.size += 1
}

/** Never over a file that is there: two may be filled within a millisecond. */
async function moveAside(path: string): Promise<void> {
  let at = Date.now()
  while (await exists(backupName(path, new Date(at)))) at += 1
  await rename(path, backupName(path, new Date(at)))
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
