/** Kubernetes' own; see kube-protobuf.ts. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** How a client wants to be shown what it asked for. */
export interface Representation {
  readonly mediaType: 'application/json' | 'application/yaml' | typeof PROTOBUF
  /** The object itself, a table of its printed columns, or its metadata alone. */
  readonly as: 'object' | 'table' | 'partial'
  /** Of the table or the partial object; they look the same in both. */
  readonly metaVersion: MetaVersion
  /** What the rows of a table carry besides their cells. */
  readonly includeObject: IncludeObject
  /** Indented, for people; of JSON only. */
  readonly isPretty: boolean
}

export type MetaVersion = 'v1' | 'v1beta1'

export type IncludeObject = 'None' | 'Metadata' | 'Object'
