import type { InputFile } from '../engine/protocol.ts'
import type { SqlValues } from './sql-values.ts'

/** The names of folders are not columns: a file may be read from another place than the store. */
const OPTIONS = 'hive_partitioning = false'

/** The rows of files, or of their rollups. `file_index` is the index of the file in the list. */
export function parquetSql(
  files: readonly InputFile[],
  values: SqlValues,
  which: 'path' | 'rollupPath' = 'path',
): string {
  return `read_parquet(${values.texts(files.map((file) => file[which]))}, ${OPTIONS})`
}

/** The cluster of a row of these files. */
export function clusterSql(files: readonly InputFile[], values: SqlValues): string {
  const clusters = files.map(({ cluster }) => cluster)
  return isOneCluster(files)
    ? `${values.text(clusters[0] ?? '')}::VARCHAR`
    : `${values.texts(clusters)}[file_index::BIGINT + 1]`
}

export function isOneCluster(files: readonly InputFile[]): boolean {
  return files.every(({ cluster }) => cluster === files[0]?.cluster)
}
