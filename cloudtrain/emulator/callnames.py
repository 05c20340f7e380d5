"""What calls are named in a fault file: as the services' own documentation has them.

Only calls that come to the emulator's own front can be made to fail. Objects of Cloud Storage and Blob storage are
asked for at the servers that stand for them.
"""

from __future__ import annotations

from collections.abc import Mapping

CALLS: Mapping[str, tuple[str, ...]] = {
    "sagemaker": (
        # SageMaker
        "CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob", "ListTrainingJobs", "DeleteTrainingJob",
        "UpdateTrainingJob", "ListTags", "AddTags", "DeleteTags",
        # S3
        "ListBuckets", "CreateBucket", "HeadBucket", "DeleteBucket", "GetBucketLocation", "ListObjects",
        "ListObjectsV2", "GetObject", "HeadObject", "PutObject", "CopyObject", "DeleteObject", "DeleteObjects",
        "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload", "ListParts",
        "ListMultipartUploads",
        # CloudWatch Logs
        "CreateLogGroup", "CreateLogStream", "PutLogEvents", "DescribeLogGroups", "DescribeLogStreams",
        "GetLogEvents", "FilterLogEvents",
        # STS, IAM, ECR, Secrets Manager, Systems Manager, Service Quotas
        "GetCallerIdentity", "AssumeRole", "GetRole", "SimulatePrincipalPolicy", "DescribeRepositories",
        "DescribeImages", "CreateSecret", "DescribeSecret", "GetSecretValue", "PutParameter", "GetParameter",
        "GetServiceQuota", "ListServiceQuotas",
    ),
    "vertex": (
        "CreateCustomJob", "GetCustomJob", "ListCustomJobs", "CancelCustomJob", "DeleteCustomJob", "ListLogEntries",
        "CreateSecret", "AddSecretVersion", "AccessSecretVersion",
    ),
    "azureml": (
        "Jobs_CreateOrUpdate", "Jobs_Get", "Jobs_List", "Jobs_Cancel", "Jobs_Delete", "Runs_GetDetails",
        "Runs_GetRunData", "Runs_GetServiceInstance", "Runs_Modify", "CodeVersions_CreateOrGetStartPendingUpload",
        "CodeVersions_CreateOrUpdate", "CodeVersions_Get", "CodeVersions_List", "EnvironmentVersions_CreateOrUpdate",
        "EnvironmentVersions_Get", "EnvironmentVersions_List", "Datastores_CreateOrUpdate", "Datastores_Get",
        "Datastores_List", "Datastores_ListSecrets", "Compute_Get", "Workspaces_Get", "Discovery_Get",
    ),
}  # fmt: skip
"""By provider. AWS has more; a pattern reaches those that moto answers and nobody has written down here."""
