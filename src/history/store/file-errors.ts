import { StoreError, type StoreErrorKind } from './object-store.ts'

const KINDS: ReadonlyMap<string, StoreErrorKind> = new Map([
  ['ENOSPC', 'full'],
  ['EDQUOT', 'full'],
  ['EACCES', 'denied'],
  ['EPERM', 'denied'],
  ['EROFS', 'denied'],
])

/** What to check, by the code of the error. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'free space on its file system, or enlarge it'],
  ['EDQUOT', 'raise the quota of its user'],
  ['EACCES', 'check the owner and the mode of the folders'],
  ['EPERM', 'check the owner and the mode of the folders'],
  ['EROFS', 'the file system is mounted read-only'],
])

/** The failure of a file operation. Its message says what failed, where, and what to check. */
export function fileError(doing: string, path: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  const reason = error instanceof Error ? error.message : String(error)
  const remedy = REMEDIES.get(code)
  const message = `cannot ${doing} ${path}: ${reason}${remedy === undefined ? '' : ` (${remedy})`}`
  return new StoreError(KINDS.get(code) ?? 'unavailable', message, error)
}

/** The same for a file that is an object: if there is none, the object is missing. */
export function objectFileError(path: string, error: unknown): StoreError {
  // ENOTDIR: a folder of its path is a file.
  const isMissing = ['ENOENT', 'ENOTDIR'].includes(codeOf(error))
  return isMissing
    ? new StoreError('missing', `there is no file ${path}`, error)
    : fileError('read', path, error)
}

/** The code of a system error, `ENOENT`; empty for any other error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
