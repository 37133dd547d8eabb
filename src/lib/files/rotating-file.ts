import { constants } from 'node:fs'
import { access, type FileHandle, mkdir, open, realpath, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppendError, type LineTarget } from '../log/line-queue.ts'
import { backupName, tidyBackups } from './file-backups.ts'

/** Readable only by the owner, unless an operator changes it. */
const MODE = 0o600
const FOLDER_MODE = 0o700
const NEWLINE = Buffer.from('\n')
/** How often the path is checked for a file that another program moved away. */
const MOVE_CHECK_MS = 1000
const ROTATION_RETRY_MS = 10_000

export interface RotatingFileOptions {
  readonly path: string
  /** The file is rotated before a write would make it longer than this. */
  readonly bytesMax: number
  /** Backups beyond this number or age are removed; 0 for no limit. */
  readonly backupsMax: number
  readonly backupAgeMsMax: number
  readonly compress: boolean
  /** Called when a full file could not be renamed, or a backup not be removed or compressed. */
  readonly onRotationFailed: (error: unknown) => void
}

/**
 * Appends lines to a file. A full file is renamed to `name-<time>.ext` in the same folder and a new one
 * is created, always between two lines. When another program moves the file away, a new one is created
 * within a second. A path that is not a regular file, such as a terminal or `/dev/stdout`, is never
 * rotated.
 */
export class RotatingFile implements LineTarget {
  readonly #options: RotatingFileOptions
  /** Symbolic links are resolved once, so that rotation renames the file and not the link. */
  readonly #path: string
  #open: OpenFile | undefined
  #moveCheckedAt = 0
  #rotatesAgainAt = 0
  /** Whether a line is partially written: its rest belongs in the same file. */
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
      // The file handle itself may be broken: the next attempt opens the file again.
      await this.#closeFile()
      throw new AppendError(written, error)
    } finally {
      if (written > 0) this.#isInLine = bytes[written - 1] !== NEWLINE[0]
    }
  }

  async close(): Promise<void> {
    await this.#tidying
    await this.#closeFile()
  }

  async #fileFor(bytes: Buffer): Promise<OpenFile> {
    let file = this.#open
    if (file !== undefined && (await this.#isMoved(file))) {
      await this.#closeFile()
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
    if (!file.isRegular || this.#isInLine || now - this.#moveCheckedAt < MOVE_CHECK_MS) return false
    this.#moveCheckedAt = now
    try {
      const found = await stat(this.#path)
      return found.ino !== file.inode || found.dev !== file.device
    } catch {
      return true
    }
  }

  /** If the rename fails, the full file stays in use: a long file is better than lost lines. */
  async #rotate(full: OpenFile): Promise<OpenFile> {
    if (performance.now() < this.#rotatesAgainAt) return full
    try {
      await moveAside(this.#path)
    } catch (error) {
      this.#rotatesAgainAt = performance.now() + ROTATION_RETRY_MS
      this.#options.onRotationFailed(error)
      return full
    }
    await this.#closeFile()
    this.#open = await openFile(this.#path)
    this.#tidy()
    return this.#open
  }

  /** Runs in the background, at most one at a time. */
  #tidy(): void {
    this.#tidying ??= tidyBackups(this.#path, this.#options)
      .catch(this.#options.onRotationFailed)
      .finally(() => {
        this.#tidying = undefined
      })
  }

  async #closeFile(): Promise<void> {
    const file = this.#open
    this.#open = undefined
    // An error here changes nothing: the writes have succeeded, or their failure is reported.
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

/** With `isInLine`, the next write continues the unfinished line at the end of the file. */
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

/** Ends a partial line that a killed process may have left. */
async function endLastLine(file: OpenFile): Promise<void> {
  const last = Buffer.alloc(1)
  await file.handle.read(last, 0, 1, file.size - 1)
  if (last[0] === NEWLINE[0]) return
  await file.handle.write(NEWLINE)
  file.size += 1
}

/** Never overwrites a backup: two files may become full within a millisecond. */
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
