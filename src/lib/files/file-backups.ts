/** Names, removes and compresses the backups that a rotating file leaves beside it. */
import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

const MODE = 0o600
const COMPRESSED = '.gz'
/** The suffix of a file that is being compressed or whose compression was interrupted. */
const UNFINISHED = '.tmp'

export interface BackupLimits {
  /** 0 for no limit. */
  readonly backupsMax: number
  /** 0 for no limit. */
  readonly backupAgeMsMax: number
  readonly compress: boolean
}

/** `audit.log` becomes `audit-2026-11-15T04-02-47.123.log`. */
export function backupName(path: string, at: Date): string {
  const { prefix, extension } = partsOf(path)
  const time = at.toISOString().replaceAll(':', '-').replace('Z', '')
  return join(dirname(path), `${prefix}${time}${extension}`)
}

/** Removes the backups beyond the limits of number and age; compresses the rest if configured. */
export async function tidyBackups(path: string, limits: BackupLimits): Promise<void> {
  const folder = dirname(path)
  const names = await readdir(folder)
  const backups = backupsAmong(names, path)
  const oldest = limits.backupAgeMsMax === 0 ? 0 : Date.now() - limits.backupAgeMsMax
  const countMax = limits.backupsMax === 0 ? backups.length : limits.backupsMax
  for (const [index, { name, at }] of backups.entries()) {
    if (index >= countMax || at < oldest) await rm(join(folder, name), { force: true })
    else if (limits.compress && !name.endsWith(COMPRESSED)) await compress(join(folder, name))
  }
}

interface Backup {
  readonly name: string
  readonly at: number
}

/** Newest first. */
function backupsAmong(names: readonly string[], path: string): readonly Backup[] {
  const { prefix, extension } = partsOf(path)
  const backups: Backup[] = []
  for (const name of names) {
    const plain = name.endsWith(COMPRESSED) ? name.slice(0, -COMPRESSED.length) : name
    if (!plain.startsWith(prefix) || !plain.endsWith(extension)) continue
    const time = plain.slice(prefix.length, plain.length - extension.length)
    const parts = /^(\d{4}-\d{2}-\d{2}T)(\d{2})-(\d{2})-(\d{2}\.\d{3})$/.exec(time)
    if (parts === null) continue
    const at = Date.parse(`${parts[1]}${parts[2]}:${parts[3]}:${parts[4]}Z`)
    if (!Number.isNaN(at)) backups.push({ name, at })
  }
  return backups.sort((one, other) => other.at - one.at)
}

/** zlib runs in the thread pool. The plain file is removed once the compressed one is complete. */
async function compress(path: string): Promise<void> {
  const unfinished = `${path}${COMPRESSED}${UNFINISHED}`
  await pipeline(
    createReadStream(path),
    createGzip(),
    createWriteStream(unfinished, { mode: MODE }),
  )
  await rename(unfinished, `${path}${COMPRESSED}`)
  await rm(path, { force: true })
}

function partsOf(path: string): { readonly prefix: string; readonly extension: string } {
  const extension = extname(path)
  return { prefix: `${basename(path, extension)}-`, extension }
}
