select
  {{ record_id() }} as opportunity_id,
  name as opportunity_name,
  accountid as account_id,
  ownerid as owner_id,
  stagename as stage_name,
  cast(amount as decimal(18, 2)) as amount,
  cast(probability as decimal(18, 2)) as probability,
  closedate as close_date,
  isclosed as is_closed,
  iswon as is_won,
  createddate as created_at,
  laststagechangedate as last_stage_change_at,
  _stale as is_stale,
  _partial as is_partial
from {{ source('salesforce', 'opportunities') }}
