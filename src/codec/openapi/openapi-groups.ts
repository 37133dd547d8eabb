/** The groups in the OpenAPI documents: their kinds and operations. */
import type { EventGroup } from '../../api/event-groups.ts'
import type { StructType } from '../../api/schema.ts'
import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import { groupFields } from '../../storage/summary.ts'
import { clusterType, listTypeOf, namespaceType } from '../object-types.ts'
import { reviewTypes } from '../review-types.ts'
import { eventHistogramType, eventSummaryType } from '../summary-types.ts'
import { retentionWindowType } from '../window-types.ts'
import {
  eventOperations,
  groupOperations,
  listOnlyOperations,
  type Operation,
  query,
  readOperations,
  reviewOperations,
} from './openapi-operations.ts'

export interface OpenApiGroup {
  /** Empty for the core group. */
  readonly name: string
  readonly version: string
  /** Top-level objects, which have a kind and an apiVersion. */
  readonly kinds: readonly StructType[]
  readonly operations: readonly Operation[]
}

export function eventsOpenApi({ name, type }: EventGroup): OpenApiGroup {
  const kinds = [type, listTypeOf(type, 'The events.')]
  const operations = eventOperations(name)
  if (name !== '') return { name, version: 'v1', kinds, operations }
  return {
    name,
    version: 'v1',
    kinds: [...kinds, namespaceType, listTypeOf(namespaceType, 'The namespaces.')],
    operations: [...operations, ...readOperations('', 'v1', 'Namespace')],
  }
}

/** The group of the objects that only this server has. */
export const tidingsOpenApi: OpenApiGroup = {
  name: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  kinds: [
    clusterType,
    listTypeOf(clusterType, 'The clusters.'),
    eventSummaryType,
    listTypeOf(eventSummaryType, 'The groups, the largest or fastest first.'),
    eventHistogramType,
    listTypeOf(eventHistogramType, 'The buckets, by time.'),
    retentionWindowType,
    listTypeOf(retentionWindowType, 'The namespaces and clusters.'),
  ],
  operations: [
    ...groupOperations(TIDINGS_GROUP, TIDINGS_VERSION),
    ...readOperations(TIDINGS_GROUP, TIDINGS_VERSION, 'Cluster'),
    ...listOnlyOperations({
      group: TIDINGS_GROUP,
      version: TIDINGS_VERSION,
      kind: 'EventSummary',
      resource: 'eventsummaries',
      options: [
        query('groupBy', 'string', `Fields, separated by commas: ${groupFields.join(', ')}.`),
        query('order', 'string', 'Sort by count, newest (Warnings first) or rate.'),
        query(
          'compare',
          'string',
          'A duration such as 24h: only groups that are new compared with that time before.',
        ),
      ],
    }),
    ...listOnlyOperations({
      group: TIDINGS_GROUP,
      version: TIDINGS_VERSION,
      kind: 'EventHistogram',
      resource: 'eventhistograms',
      options: [
        query('buckets', 'integer', 'Number of parts of the time window; 60 by default.'),
        query(
          'by',
          'string',
          `The field whose values are counted separately: one of ${groupFields.join(', ')}.`,
        ),
        query(
          'limit',
          'integer',
          'Number of values counted separately, 1 to 50; the others are counted together.',
        ),
      ],
    }),
    ...listOnlyOperations({
      group: TIDINGS_GROUP,
      version: TIDINGS_VERSION,
      kind: 'RetentionWindow',
      resource: 'retentionwindows',
    }),
  ],
}

/** The groups of the self reviews. */
export const reviewsOpenApi: readonly OpenApiGroup[] = [...reviewTypes].map(([name, kinds]) => ({
  name,
  version: 'v1',
  kinds,
  operations: reviewOperations(
    name,
    kinds.map((kind) => kind.name),
  ),
}))
