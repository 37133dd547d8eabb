/**
 * The files of the web page, read once at start. Requests only look up names in the result, so
 * request paths never reach the file system.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { Coding } from './content-coding.ts'

const INDEX = 'index.html'
const ASSETS = 'assets'

/** The suffixes of compressed files. */
const SUFFIXES: ReadonlyMap<Coding, string> = new Map([
  ['br', '.br'],
  ['gzip', '.gz'],
])

/** Keyed by extension. Browsers do not guess another type (`nosniff`). */
const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

/** A file in one coding. */
export interface FileForm {
  readonly etag: string
  readonly bytes: Buffer
}

export interface PageFile {
  readonly contentType: string
  readonly plain: FileForm
  readonly compressed: ReadonlyMap<Coding, FileForm>
}

export interface PageFiles {
  readonly index: PageFile
  /** Keyed by name, such as `main-1a2b3c.js`. */
  readonly assets: ReadonlyMap<string, PageFile>
}

/** Returns undefined when the page was not built. Rejects when its files cannot be read. */
export async function loadPageFiles(folder: string): Promise<PageFiles | undefined> {
  const index = await loadFile(folder, INDEX)
  if (index === undefined) return undefined
  const assets = new Map<string, PageFile>()
  const assetFolder = join(folder, ASSETS)
  for (const name of await readdir(assetFolder)) {
    if (/\.(br|gz)$/.test(name)) continue
    const file = await loadFile(assetFolder, name)
    if (file !== undefined) assets.set(name, file)
  }
  return { index, assets }
}

/** Returns undefined when there is no such file. */
async function loadFile(folder: string, name: string): Promise<PageFile | undefined> {
  const contentType = CONTENT_TYPES.get(extname(name))
  if (contentType === undefined) throw new Error(`${join(folder, name)}: no content type is known`)
  const plain = await formAt(join(folder, name))
  if (plain === undefined) return undefined
  const compressed = new Map<Coding, FileForm>()
  for (const [coding, suffix] of SUFFIXES) {
    const form = await formAt(join(folder, `${name}${suffix}`))
    if (form !== undefined) compressed.set(coding, form)
  }
  return { contentType, plain, compressed }
}

async function formAt(path: string): Promise<FileForm | undefined> {
  try {
    const bytes = await readFile(path)
    // Each form has its own ETag, since it identifies the bytes that are sent.
    return { etag: `"${hash('sha256', bytes, 'base64url')}"`, bytes }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
