select
  {{ record_id() }} as account_id,
  {{ account_name() }} as account_name,
  industry,
  ownerid as owner_id
from {{ source('salesforce', 'accounts') }}
