import { formatVersion } from '../../storage/resource-version.ts'
import type { ShownEvent } from '../event/event-bytes.ts'
import { jsonOf } from '../json/json-write.ts'
import type { MetaVersion } from '../representation.ts'
import {
  type Affixes,
  type EventShape,
  type EventView,
  type EventWriter,
  type ListMeta,
  listMetaText,
} from './event-shapes.ts'
import { clusterCell, clusterColumn } from './table.ts'

export interface TableOptions {
  readonly view: Pick<EventView, 'columns' | 'cells'>
  readonly metaVersion: MetaVersion
  /** The shape of the object in each row. Undefined when rows contain only cells. */
  readonly rowObject: EventShape | undefined
  /** The wall clock in milliseconds. */
  readonly now: () => number
  /** Whether each row begins with the cluster of its event. */
  readonly isWildcard: boolean
}

function columnsText({ view: { columns }, isWildcard }: TableOptions): string {
  return JSON.stringify(isWildcard ? [clusterColumn, ...columns] : columns)
}

/** Encodes events as rows of printed columns. A single object is a table of one row. */
export class TableShape implements EventShape {
  /** The cells contain ages, which change with time. */
  readonly isCacheable = false
  readonly listName = 'rows'
  readonly emptyList = '[]'
  readonly #options: TableOptions
  readonly #columns: string
  readonly #rowObject: EventWriter | undefined

  constructor(options: TableOptions, columns: string = columnsText(options)) {
    this.#options = options
    this.#columns = columns
    this.#rowObject = options.rowObject?.writer()
  }

  /** Encodes the frames of a watch after the first one, which has the column definitions. */
  withoutColumns(): TableShape {
    return new TableShape(this.#options, 'null')
  }

  listStart(meta: ListMeta): string {
    const { metaVersion } = this.#options
    return `{"kind":"Table","apiVersion":"meta.k8s.io/${metaVersion}","metadata":${listMetaText(meta)},"columnDefinitions":${this.#columns},"rows":`
  }

  entries(events: readonly ShownEvent[], before: string): Buffer {
    return Buffer.from(before + events.map((event) => this.#row(event)).join(','))
  }

  writer(affixes: Affixes = { before: '', after: '' }): EventWriter {
    return (event) => {
      const { version } = event
      const resourceVersion = version === undefined ? undefined : formatVersion(version)
      const table = `${this.listStart({ resourceVersion })}[${this.#row(event)}]}`
      return Buffer.from(affixes.before + table + affixes.after)
    }
  }

  #row(event: ShownEvent): string {
    const { view, isWildcard, now } = this.#options
    const tree = JSON.parse(event.body.toString())
    const cells = [...view.cells(tree, now())]
    if (isWildcard) cells.unshift(clusterCell(tree))
    const object = this.#rowObject?.(event).toString() ?? 'null'
    return `{"cells":${jsonOf(cells)},"object":${object}}`
  }
}
