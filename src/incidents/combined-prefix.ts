/** What the recorder of core/v1 puts in front of the newest note when it combines similar events. */
export const COMBINED_PREFIX = '(combined from similar events): '
