/** The groups that OpenAPI tells of: what each is made of, and what can be asked there. */
import type { EventGroup } from '../api/event-groups.ts'
import { StructType } from '../api/schema.ts'
import { listMetaType } from './meta-types.ts'
import { eventOperations, type Operation, reviewOperations } from './openapi-operations.ts'
import { reviewTypes } from './review-types.ts'

export interface OpenApiGroup {
  /** Empty for core. */
  readonly name: string
  /** Its objects that can stand alone, and so say what they are. */
  readonly kinds: readonly StructType[]
  readonly operations: readonly Operation[]
}

/** A group of events. */
export function eventsOpenApi({ name, type }: EventGroup): OpenApiGroup {
  return { name, kinds: [type, eventListType(type)], operations: eventOperations(name) }
}

/** The groups in which callers ask about themselves. */
export const reviewsOpenApi: readonly OpenApiGroup[] = [...reviewTypes].map(([name, kinds]) => ({
  name,
  kinds,
  operations: reviewOperations(
    name,
    kinds.map((kind) => kind.name),
  ),
}))

function eventListType(type: StructType): StructType {
  return new StructType('EventList', [
    {
      name: 'metadata',
      number: 1,
      type: { struct: listMetaType },
      doc: 'Which state this is, and how to get the rest.',
    },
    { name: 'items', number: 2, type: { listOf: type }, isRequired: true, doc: 'The events.' },
  ])
}
