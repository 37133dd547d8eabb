/** DuckDB in its own process, restricted to the memory and the folders that it needs. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { EngineSettings } from './protocol.ts'

/** Where results are written. */
export function resultFolder({ folder }: Pick<EngineSettings, 'folder'>): string {
  return join(folder, 'written')
}

/** A result that is not complete has this suffix. */
export const PARTIAL = '.partial'

/** Also removes what an earlier process left. */
export async function openDuckDb(settings: EngineSettings): Promise<DuckDBInstance> {
  const { folder, readFolders, memoryBytes, spillBytes, threads } = settings
  const spill = join(folder, 'spill')
  const results = resultFolder(settings)
  await rm(spill, { recursive: true, force: true })
  await mkdir(spill, { recursive: true })
  await mkdir(results, { recursive: true })
  for (const name of await readdir(results)) {
    if (name.endsWith(PARTIAL)) await rm(join(results, name), { force: true })
  }
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const folders = [results, ...readFolders].map((path) => quoted(path.replace(/\/*$/, '/')))
  for (const setting of [
    `memory_limit = ${quoted(`${memoryBytes} bytes`)}`,
    `threads = ${threads}`,
    `temp_directory = ${quoted(spill)}`,
    `max_temp_directory_size = ${quoted(`${spillBytes} bytes`)}`,
    // Rows are in the order that a query asks for, and otherwise in none, which takes less memory.
    'preserve_insertion_order = false',
    // There is no file to write tables to, and no table to compact for it.
    `checkpoint_threshold = '1 TB'`,
    // Otherwise the process holds twice the memory that DuckDB counts.
    `allocator_flush_threshold = '8 MiB'`,
    `allocator_bulk_deallocation_flush_threshold = '16 MiB'`,
    'allocator_background_threads = true',
    `TimeZone = 'UTC'`,
    'autoinstall_known_extensions = false',
    'autoload_known_extensions = false',
    'allow_community_extensions = false',
    `allowed_directories = [${folders.join(', ')}]`,
    'enable_external_access = false',
    'lock_configuration = true',
  ]) {
    await connection.run(`SET ${setting}`)
  }
  connection.closeSync()
  return instance
}

/** A text as a literal in SQL. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
